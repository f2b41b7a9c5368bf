/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes, operators and the convertor of Open MPI, as the core wants them. */
#include <stdlib.h>
#include <string.h>

#include <coll.h>

#include "coll/mpi/openmpi/glue.h"

#include <ompi/datatype/ompi_datatype_internal.h>
#include <opal/datatype/opal_convertor.h>
#include <opal/runtime/opal_progress.h>

/* The MPI passes a count to operators of Fortran (meson.build). */
_Static_assert(sizeof(MPI_Fint) == sizeof(int), "an INTEGER of Fortran has the size of an int");

/* The type of coll.h that a predefined one is; 0: none. C's pairs of a value and an index are
 * structs with gaps, and ULC's are the same structs. */
static uint32_t native_type(ompi_datatype_t* type) {
    if (!ompi_datatype_is_predefined(type)) return 0;
    switch (type->id) {
        case OMPI_DATATYPE_MPI_INT8_T:
            return ULC_INT8;
        case OMPI_DATATYPE_MPI_UINT8_T:
            return ULC_UINT8;
        case OMPI_DATATYPE_MPI_INT16_T:
            return ULC_INT16;
        case OMPI_DATATYPE_MPI_UINT16_T:
            return ULC_UINT16;
        case OMPI_DATATYPE_MPI_INT32_T:
            return ULC_INT32;
        case OMPI_DATATYPE_MPI_UINT32_T:
            return ULC_UINT32;
        case OMPI_DATATYPE_MPI_INT64_T:
            return ULC_INT64;
        case OMPI_DATATYPE_MPI_UINT64_T:
            return ULC_UINT64;
        case OMPI_DATATYPE_MPI_FLOAT:
            return ULC_FLOAT;
        case OMPI_DATATYPE_MPI_DOUBLE:
            return ULC_DOUBLE;
        case OMPI_DATATYPE_MPI_LONG_DOUBLE:
            return ULC_LONG_DOUBLE;
        case OMPI_DATATYPE_MPI_C_BOOL:
            return ULC_BOOL;
        case OMPI_DATATYPE_MPI_C_FLOAT_COMPLEX:
            return ULC_FLOAT_COMPLEX;
        case OMPI_DATATYPE_MPI_C_DOUBLE_COMPLEX:
            return ULC_DOUBLE_COMPLEX;
        case OMPI_DATATYPE_MPI_C_LONG_DOUBLE_COMPLEX:
            return ULC_LONG_DOUBLE_COMPLEX;
        case OMPI_DATATYPE_MPI_FLOAT_INT:
            return ULC_FLOAT_INT;
        case OMPI_DATATYPE_MPI_DOUBLE_INT:
            return ULC_DOUBLE_INT;
        case OMPI_DATATYPE_MPI_LONG_INT:
            return ULC_LONG_INT;
        case OMPI_DATATYPE_MPI_SHORT_INT:
            return ULC_SHORT_INT;
        case OMPI_DATATYPE_MPI_2INT:
            return ULC_2INT;
        case OMPI_DATATYPE_MPI_LONG_DOUBLE_INT:
            return ULC_LONG_DOUBLE_INT;
        default:
            return 0;
    }
}

ulc_mpi_type mca_coll_ulc_type(ompi_datatype_t* type) {
    ulc_mpi_type ours = {.handle = type};
    ptrdiff_t lb = 0;
    ptrdiff_t true_extent = 0;
    size_t size = 0;
    ompi_datatype_type_size(type, &size);
    ompi_datatype_get_extent(type, &lb, &ours.extent);
    ompi_datatype_get_true_extent(type, &ours.true_lb, &true_extent);
    ours.size = size;
    ours.true_extent = (size_t)true_extent;
    ours.tight = (ptrdiff_t)size == ours.extent &&
                 opal_datatype_is_contiguous_memory_layout(&type->super, 2);
    ours.native = native_type(type);
    if (ours.native != 0 && (ptrdiff_t)ulc_type_bytes(ours.native) != ours.extent) ours.native = 0;
    return ours;
}

ulc_mpi_type mca_coll_ulc_type_of(const void* buffer, ompi_datatype_t* type) {
    const ulc_mpi_type none = {0};
    return IN_PLACE(buffer) || type == NULL ? none : mca_coll_ulc_type(type);
}

ulc_mpi_operator mca_coll_ulc_operator(ompi_op_t* op) {
    ulc_mpi_operator ours = {.handle = op, .commutes = ompi_op_is_commute(op)};
    if (!ompi_op_is_intrinsic(op)) return ours;
    switch (op->o_f_to_c_index) {
        case OMPI_OP_BASE_FORTRAN_MAX:
            ours.native = ULC_MAX;
            break;
        case OMPI_OP_BASE_FORTRAN_MIN:
            ours.native = ULC_MIN;
            break;
        case OMPI_OP_BASE_FORTRAN_SUM:
            ours.native = ULC_SUM;
            break;
        case OMPI_OP_BASE_FORTRAN_PROD:
            ours.native = ULC_PROD;
            break;
        case OMPI_OP_BASE_FORTRAN_LAND:
            ours.native = ULC_LAND;
            break;
        case OMPI_OP_BASE_FORTRAN_BAND:
            ours.native = ULC_BAND;
            break;
        case OMPI_OP_BASE_FORTRAN_LOR:
            ours.native = ULC_LOR;
            break;
        case OMPI_OP_BASE_FORTRAN_BOR:
            ours.native = ULC_BOR;
            break;
        case OMPI_OP_BASE_FORTRAN_LXOR:
            ours.native = ULC_LXOR;
            break;
        case OMPI_OP_BASE_FORTRAN_BXOR:
            ours.native = ULC_BXOR;
            break;
        case OMPI_OP_BASE_FORTRAN_MAXLOC:
            ours.native = ULC_MAXLOC;
            break;
        case OMPI_OP_BASE_FORTRAN_MINLOC:
            ours.native = ULC_MINLOC;
            break;
        default:
            break;
    }
    return ours;
}

static int is_contiguous(const ulc_mpi_type* type, size_t count) {
    const ompi_datatype_t* theirs = type->handle;
    return opal_datatype_is_contiguous_memory_layout(&theirs->super, (int32_t)count);
}

/* Runs a convertor over the whole message; it may stop at a boundary that it chose. */
static int convert(const ulc_mpi_type* type, size_t count, const void* memory, void* packed,
                   int packs) {
    const ompi_datatype_t* theirs = type->handle;
    opal_convertor_t convertor;
    const size_t bytes = type->size * count;
    size_t done = 0;
    int status = 0;
    if (bytes == 0) return 0;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    status = packs ? opal_convertor_copy_and_prepare_for_send(
                         ompi_mpi_local_convertor, &theirs->super, count, memory, 0, &convertor)
                   : opal_convertor_copy_and_prepare_for_recv(
                         ompi_mpi_local_convertor, &theirs->super, count, memory, 0, &convertor);
    while (status >= 0 && done < bytes) {
        struct iovec piece = {.iov_base = (char*)packed + done, .iov_len = bytes - done};
        uint32_t pieces = 1;
        size_t moved = bytes - done;
        status = packs ? opal_convertor_pack(&convertor, &piece, &pieces, &moved)
                       : opal_convertor_unpack(&convertor, &piece, &pieces, &moved);
        if (moved == 0) break;
        done += moved;
    }
    OBJ_DESTRUCT(&convertor);
    return status >= 0 && done == bytes ? 0 : -1;
}

/* A convertor that stops between pieces. It packs whole basic elements only, so the bytes of one
 * that crosses the border of two pieces wait in `carried`. */
typedef struct {
    opal_convertor_t convertor;
    int packs;
    size_t from; /* of carried, the first byte to go */
    size_t to;   /* behind the last */
    unsigned char carried[64];
} stream_t;

static void* open_stream(const ulc_mpi_type* type, size_t count, const void* memory, int packs) {
    const ompi_datatype_t* theirs = type->handle;
    stream_t* stream = calloc(1, sizeof *stream);
    int status = 0;
    if (stream == NULL) return NULL;
    stream->packs = packs;
    OBJ_CONSTRUCT(&stream->convertor, opal_convertor_t);
    status =
        packs ? opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &theirs->super,
                                                         count, memory, 0, &stream->convertor)
              : opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &theirs->super,
                                                         count, memory, 0, &stream->convertor);
    if (status >= 0) return stream;
    OBJ_DESTRUCT(&stream->convertor);
    free(stream);
    return NULL;
}

/* Bytes that the convertor moved at once; 0: none, or it failed. */
static size_t move_some(stream_t* stream, void* packed, size_t bytes) {
    struct iovec piece = {.iov_base = packed, .iov_len = bytes};
    uint32_t pieces = 1;
    size_t moved = bytes;
    const int status = stream->packs
                           ? opal_convertor_pack(&stream->convertor, &piece, &pieces, &moved)
                           : opal_convertor_unpack(&stream->convertor, &piece, &pieces, &moved);
    return status >= 0 ? moved : 0;
}

static int move_stream(void* opaque, void* packed, size_t bytes) {
    stream_t* stream = opaque;
    unsigned char* at = packed;
    while (bytes > 0) {
        size_t n = stream->to - stream->from;
        if (n > 0) {
            if (n > bytes) n = bytes;
            memcpy(at, stream->carried + stream->from, n);
            stream->from += n;
        } else {
            n = move_some(stream, at, bytes);
        }
        if (n == 0 && stream->packs && bytes < sizeof stream->carried) {
            stream->from = 0;
            stream->to = move_some(stream, stream->carried, sizeof stream->carried);
            if (stream->to == 0) return -1;
        } else if (n == 0) {
            return -1;
        }
        at += n;
        bytes -= n;
    }
    return 0;
}

static void close_stream(void* opaque) {
    stream_t* stream = opaque;
    OBJ_DESTRUCT(&stream->convertor);
    free(stream);
}

static int pack(const ulc_mpi_type* type, size_t count, const void* memory, void* packed) {
    return convert(type, count, memory, packed, 1);
}

static int unpack(const ulc_mpi_type* type, size_t count, void* memory, const void* packed) {
    return convert(type, count, memory, (void*)packed, 0);
}

static void reduce(const ulc_mpi_operator* op, const ulc_mpi_type* type, void* in, void* inout,
                   size_t count) {
    ompi_op_reduce(op->handle, in, inout, (int)count, type->handle);
}

static void progress(void) { opal_progress(); }

const ulc_mpi_hooks mca_coll_ulc_hooks = {
    .contiguous = is_contiguous,
    .pack = pack,
    .unpack = unpack,
    .open_stream = open_stream,
    .move_stream = move_stream,
    .close_stream = close_stream,
    .reduce = reduce,
    .progress = progress,
};
