// The operations that move data. Each takes its buffers, starts the operation of coll.h, waits, and
// gives the buffers back. In place: where the memory lies as ULC wants it, ULC's own in-place form;
// where it is packed, the own block is packed as if it had been given.
#include <coll.h>

#include <cstring>

#include "coll/mpi/buffers.h"

namespace ulc::mpi {
namespace {

[[nodiscard]] ulc_endpoint* ep() { return session().endpoint(); }

[[nodiscard]] const void* element(const void* memory, const ulc_mpi_type& type, std::size_t index) {
    return moved(memory, static_cast<std::ptrdiff_t>(index) * type.extent);
}

[[nodiscard]] int given_back(int state, bool well) {
    return state == ULC_OK && !well ? int{ULC_ERR_NO_MEMORY} : state;
}

}  // namespace
}  // namespace ulc::mpi

using namespace ulc::mpi;  // NOLINT(google-build-using-namespace): the C entries of this namespace

extern "C" {

int ulc_mpi_barrier(ulc_mpi_comm* comm) {
    return session().run("MPI_Barrier", [&](ulc_coll** op) {
        return ulc_barrier_start(ep(), comm->group, nullptr, op);
    });
}

int ulc_mpi_bcast(ulc_mpi_comm* comm, int root, void* buffer, size_t count,
                  const ulc_mpi_type* type) {
    const std::size_t bytes = count * type->size;
    if (bytes == 0) return ULC_OK;
    const bool is_root = comm->self == root;
    Buffer data;
    if (!data.take(*type, buffer, count, is_root)) return ULC_ERR_NO_MEMORY;
    const int state = session().run("MPI_Bcast", [&](ulc_coll** op) {
        return ulc_broadcast_start(ep(), comm->group, static_cast<uint16_t>(root), data.data(),
                                   bytes, nullptr, op);
    });
    return given_back(state, state != ULC_OK || is_root || data.give_back());
}

int ulc_mpi_gather(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                   size_t input_count, const ulc_mpi_type* input_type, void* output,
                   size_t output_count, const ulc_mpi_type* output_type) {
    const std::uint16_t self = comm->self;
    const bool is_root = self == root;
    in_place = is_root && in_place;
    const std::size_t bytes =
        in_place ? output_count * output_type->size : input_count * input_type->size;
    if (bytes == 0) return ULC_OK;
    Buffer out;
    if (is_root && !out.take(*output_type, output, comm->count * output_count, false))
        return ULC_ERR_NO_MEMORY;
    Buffer in;
    if (in_place && out.is_scratch()) {
        if (!in.take(*output_type, element(output, *output_type, self * output_count), output_count,
                     true))
            return ULC_ERR_NO_MEMORY;
        in_place = 0;
    } else if (!in_place && !in.take(*input_type, input, input_count, true)) {
        return ULC_ERR_NO_MEMORY;
    }
    const int state = session().run("MPI_Gather", [&](ulc_coll** op) {
        return ulc_gather_start(ep(), comm->group, static_cast<uint16_t>(root),
                                in_place ? nullptr : in.data(), out.data(), bytes, nullptr, op);
    });
    return given_back(state, state != ULC_OK || out.give_back());
}

int ulc_mpi_gatherv(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                    size_t input_count, const ulc_mpi_type* input_type, void* output,
                    ulc_mpi_blocks blocks, const ulc_mpi_type* output_type) {
    const std::uint16_t self = comm->self;
    const bool is_root = self == root;
    in_place = is_root && in_place;
    Blocks out;
    if (is_root && !out.take(*output_type, output, blocks, comm->count, false))
        return ULC_ERR_NO_MEMORY;
    const std::size_t bytes = in_place ? out.lengths()[self] : input_count * input_type->size;
    Buffer in;
    if (in_place && out.is_scratch()) {
        if (!in.take(*output_type, out.block(self), static_cast<size_t>(blocks.counts[self]), true))
            return ULC_ERR_NO_MEMORY;
        in_place = 0;
    } else if (!in_place && !in.take(*input_type, input, input_count, true)) {
        return ULC_ERR_NO_MEMORY;
    }
    const int state = session().run("MPI_Gatherv", [&](ulc_coll** op) {
        return ulc_gatherv_start(ep(), comm->group, static_cast<uint16_t>(root),
                                 in_place ? nullptr : in.data(), bytes, out.data(),
                                 is_root ? out.lengths() : nullptr,
                                 is_root ? out.offsets() : nullptr, nullptr, op);
    });
    return given_back(state, state != ULC_OK || out.give_back());
}

int ulc_mpi_scatter(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                    size_t input_count, const ulc_mpi_type* input_type, void* output,
                    size_t output_count, const ulc_mpi_type* output_type) {
    const bool is_root = comm->self == root;
    in_place = is_root && in_place;
    const std::size_t bytes =
        is_root ? input_count * input_type->size : output_count * output_type->size;
    if (bytes == 0) return ULC_OK;
    Buffer in;
    Buffer out;
    if (is_root && !in.take(*input_type, input, comm->count * input_count, true))
        return ULC_ERR_NO_MEMORY;
    if (!in_place && !out.take(*output_type, output, output_count, false)) return ULC_ERR_NO_MEMORY;
    const int state = session().run("MPI_Scatter", [&](ulc_coll** op) {
        return ulc_scatter_start(ep(), comm->group, static_cast<uint16_t>(root), in.data(),
                                 in_place ? nullptr : out.data(), bytes, nullptr, op);
    });
    return given_back(state, state != ULC_OK || out.give_back());
}

int ulc_mpi_scatterv(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                     ulc_mpi_blocks blocks, const ulc_mpi_type* input_type, void* output,
                     size_t output_count, const ulc_mpi_type* output_type) {
    const std::uint16_t self = comm->self;
    const bool is_root = self == root;
    in_place = is_root && in_place;
    Blocks in;
    Buffer out;
    if (is_root && !in.take(*input_type, input, blocks, comm->count, true))
        return ULC_ERR_NO_MEMORY;
    if (!in_place && !out.take(*output_type, output, output_count, false)) return ULC_ERR_NO_MEMORY;
    const std::size_t bytes = in_place ? in.lengths()[self] : output_count * output_type->size;
    const int state = session().run("MPI_Scatterv", [&](ulc_coll** op) {
        return ulc_scatterv_start(ep(), comm->group, static_cast<uint16_t>(root), in.data(),
                                  is_root ? in.lengths() : nullptr,
                                  is_root ? in.offsets() : nullptr, in_place ? nullptr : out.data(),
                                  bytes, nullptr, op);
    });
    return given_back(state, state != ULC_OK || out.give_back());
}

int ulc_mpi_allgather(ulc_mpi_comm* comm, int in_place, const void* input, size_t input_count,
                      const ulc_mpi_type* input_type, void* output, size_t output_count,
                      const ulc_mpi_type* output_type) {
    const std::size_t bytes = output_count * output_type->size;
    if (bytes == 0) return ULC_OK;
    Buffer out;
    if (!out.take(*output_type, output, comm->count * output_count, false))
        return ULC_ERR_NO_MEMORY;
    Buffer in;
    if (in_place && out.is_scratch()) {
        if (!in.take(*output_type, element(output, *output_type, comm->self * output_count),
                     output_count, true))
            return ULC_ERR_NO_MEMORY;
        in_place = 0;
    } else if (!in_place && !in.take(*input_type, input, input_count, true)) {
        return ULC_ERR_NO_MEMORY;
    }
    const int state = session().run("MPI_Allgather", [&](ulc_coll** op) {
        return ulc_allgather_start(ep(), comm->group, in_place ? nullptr : in.data(), out.data(),
                                   bytes, nullptr, op);
    });
    return given_back(state, state != ULC_OK || out.give_back());
}

int ulc_mpi_allgatherv(ulc_mpi_comm* comm, int in_place, const void* input, size_t input_count,
                       const ulc_mpi_type* input_type, void* output, ulc_mpi_blocks blocks,
                       const ulc_mpi_type* output_type) {
    const std::uint16_t self = comm->self;
    Blocks out;
    if (!out.take(*output_type, output, blocks, comm->count, false)) return ULC_ERR_NO_MEMORY;
    Buffer in;
    if (in_place && out.is_scratch()) {
        if (!in.take(*output_type, out.block(self), static_cast<size_t>(blocks.counts[self]), true))
            return ULC_ERR_NO_MEMORY;
        in_place = 0;
    } else if (!in_place && !in.take(*input_type, input, input_count, true)) {
        return ULC_ERR_NO_MEMORY;
    }
    const int state = session().run("MPI_Allgatherv", [&](ulc_coll** op) {
        return ulc_allgatherv_start(ep(), comm->group, in_place ? nullptr : in.data(), out.data(),
                                    out.lengths(), out.offsets(), nullptr, op);
    });
    return given_back(state, state != ULC_OK || out.give_back());
}

int ulc_mpi_alltoall(ulc_mpi_comm* comm, int in_place, const void* input, size_t input_count,
                     const ulc_mpi_type* input_type, void* output, size_t output_count,
                     const ulc_mpi_type* output_type) {
    const std::size_t bytes = output_count * output_type->size;
    if (bytes == 0) return ULC_OK;
    Buffer out;
    if (!out.take(*output_type, output, comm->count * output_count, in_place != 0))
        return ULC_ERR_NO_MEMORY;
    Buffer in;
    if (!in_place && !in.take(*input_type, input, comm->count * input_count, true))
        return ULC_ERR_NO_MEMORY;
    const int state = session().run("MPI_Alltoall", [&](ulc_coll** op) {
        return ulc_alltoall_start(ep(), comm->group, in_place ? nullptr : in.data(), out.data(),
                                  bytes, nullptr, op);
    });
    return given_back(state, state != ULC_OK || out.give_back());
}

int ulc_mpi_alltoallv(ulc_mpi_comm* comm, int in_place, const void* input, ulc_mpi_blocks from,
                      const ulc_mpi_type* input_type, void* output, ulc_mpi_blocks to,
                      const ulc_mpi_type* output_type) {
    Blocks out;
    if (!out.take(*output_type, output, to, comm->count, in_place != 0)) return ULC_ERR_NO_MEMORY;
    Blocks in;
    if (!in_place && !in.take(*input_type, input, from, comm->count, true))
        return ULC_ERR_NO_MEMORY;
    const int state = session().run("MPI_Alltoallv", [&](ulc_coll** op) {
        return ulc_alltoallv_start(ep(), comm->group, in_place ? nullptr : in.data(),
                                   in_place ? nullptr : in.lengths(),
                                   in_place ? nullptr : in.offsets(), out.data(), out.lengths(),
                                   out.offsets(), nullptr, op);
    });
    return given_back(state, state != ULC_OK || out.give_back());
}

}  // extern "C"
