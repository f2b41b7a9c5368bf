/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions: predefined operators over C's types, pairs, a user's operator that does not commute
 * over a type with gaps, long doubles at odd counts; in place; every root.
 *   mpirun -n N reducing */
#include <complex.h>

#include "check.h"

/* Matrices of two rows, modulo a prime: their product does not commute. A gap in the middle and one
 * behind; both must stay as they were. */
typedef struct matrix {
    int a, b;
    int gap;
    int c, d;
    int behind;
} matrix;
enum { kPrime = 10007 };
static MPI_Datatype matrix_type;
static MPI_Op times;
static MPI_Op plus; /* commutes, element by element */

static matrix product(matrix x, matrix y) {
    const matrix z = {(int)(((long)x.a * y.a + (long)x.b * y.c) % kPrime),
                      (int)(((long)x.a * y.b + (long)x.b * y.d) % kPrime),
                      -7,
                      (int)(((long)x.c * y.a + (long)x.d * y.c) % kPrime),
                      (int)(((long)x.c * y.b + (long)x.d * y.d) % kPrime),
                      -7};
    return z;
}
static void multiply(void* in, void* inout, int* count, MPI_Datatype* type) {
    CHECK(*type == matrix_type, "another type");
    CHECK(((size_t)in | (size_t)inout) % 16 == 0, "operands are not aligned");
    for (int i = 0; i < *count; ++i)
        ((matrix*)inout)[i] = product(((matrix*)in)[i], ((matrix*)inout)[i]);
}
static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    CHECK(*type == MPI_LONG_DOUBLE, "another type");
    for (int i = 0; i < *count; ++i)
        ((long double*)inout)[i] += ((long double*)in)[i];
}

static matrix matrix_of(int rank, int i) {
    const matrix m = {rank + 2, i % 5 + 1, -7, i % 3, rank % 4 + 1, -7};
    return m;
}
static matrix fold(int first, int last, int i) {
    matrix m = matrix_of(first, i);
    for (int r = first + 1; r <= last; ++r)
        m = product(m, matrix_of(r, i));
    return m;
}
static void same_matrix(matrix got, matrix wanted, int i) {
    CHECK(got.a == wanted.a && got.b == wanted.b && got.c == wanted.c && got.d == wanted.d,
          "element %d", i);
    CHECK(got.gap == -7 && got.behind == -7, "a gap of element %d was written", i);
}

static const int counts[] = {0, 1, 3, 5001};

static void users(MPI_Comm comm, int rank, int size) {
    const matrix empty = {0, 0, -7, 0, 0, -7};
    for (int c = 0; c < 4; ++c) {
        const int n = counts[c];
        matrix* in = malloc((size_t)(n * size + 1) * sizeof *in);
        matrix* out = malloc((size_t)(n * size + 1) * sizeof *out);
        for (int turn = 0; turn < 2; ++turn) {
#define FILL(length)                                     \
    for (int i = 0; i < (length); ++i) {                 \
        in[i] = matrix_of(rank, i);                      \
        out[i] = turn == 1 ? matrix_of(rank, i) : empty; \
    }
            const void* given = turn == 1 ? MPI_IN_PLACE : (void*)in;
            for (int root = 0; root < size; ++root) {
                FILL(n)
                MPI_Reduce(rank == root ? given : in, out, n, matrix_type, times, root, comm);
                for (int i = 0; rank == root && i < n; ++i)
                    same_matrix(out[i], fold(0, size - 1, i), i);
            }
            FILL(n)
            MPI_Allreduce(given, out, n, matrix_type, times, comm);
            for (int i = 0; i < n; ++i)
                same_matrix(out[i], fold(0, size - 1, i), i);
            FILL(n)
            MPI_Scan(given, out, n, matrix_type, times, comm);
            for (int i = 0; i < n; ++i)
                same_matrix(out[i], fold(0, rank, i), i);
            FILL(n)
            MPI_Exscan(given, out, n, matrix_type, times, comm);
            for (int i = 0; rank > 0 && i < n; ++i)
                same_matrix(out[i], fold(0, rank - 1, i), i);
            for (int i = 0; rank == 0 && turn == 0 && i < n; ++i)
                same_matrix(out[i], empty, i);
            FILL(n * size)
            MPI_Reduce_scatter_block(given, out, n, matrix_type, times, comm);
            for (int i = 0; i < n; ++i)
                same_matrix(out[i], fold(0, size - 1, rank * n + i), i);
            int* lengths = ints((size_t)size);
            int before = 0;
            int total = 0;
            for (int r = 0; r < size; ++r) {
                lengths[r] = (r + c) % 3 * n / 2;
                before += r < rank ? lengths[r] : 0;
                total += lengths[r];
            }
            FILL(total)
            MPI_Reduce_scatter(given, out, lengths, matrix_type, times, comm);
            for (int i = 0; i < lengths[rank]; ++i)
                same_matrix(out[i], fold(0, size - 1, before + i), i);
            free(lengths);
#undef FILL
        }
        free(in);
        free(out);
    }
}

/* One predefined operator over one type: element i of rank r is (r + i) % 5 + 1. */
#define PREDEFINED(ctype, type, op, start, step)                                    \
    do {                                                                            \
        for (int c = 0; c < 4; ++c) {                                               \
            const int n = counts[c];                                                \
            ctype* in = malloc((size_t)(n * size + 1) * sizeof *in);                \
            ctype* out = malloc((size_t)(n * size + 1) * sizeof *out);              \
            for (int i = 0; i < n * size; ++i)                                      \
                in[i] = (ctype)((rank + i) % 5 + 1);                                \
            MPI_Allreduce(in, out, n, type, op, comm);                              \
            for (int i = 0; i < n; ++i) {                                           \
                ctype wanted = (ctype)(start);                                      \
                for (int r = 0; r < size; ++r) {                                    \
                    const ctype v = (ctype)((r + i) % 5 + 1);                       \
                    wanted = (ctype)(step);                                         \
                }                                                                   \
                CHECK(out[i] == wanted, "%s %s element %d", #type, #op, i);         \
            }                                                                       \
            MPI_Reduce_scatter_block(in, out, n, type, op, comm);                   \
            for (int i = 0; i < n; ++i) {                                           \
                ctype wanted = (ctype)(start);                                      \
                for (int r = 0; r < size; ++r) {                                    \
                    const ctype v = (ctype)((r + rank * n + i) % 5 + 1);            \
                    wanted = (ctype)(step);                                         \
                }                                                                   \
                CHECK(out[i] == wanted, "%s %s block element %d", #type, #op, i);   \
            }                                                                       \
            for (int i = 0; i < n; ++i)                                             \
                out[i] = in[i];                                                     \
            MPI_Scan(MPI_IN_PLACE, out, n, type, op, comm);                         \
            for (int i = 0; i < n; ++i) {                                           \
                ctype wanted = (ctype)(start);                                      \
                for (int r = 0; r <= rank; ++r) {                                   \
                    const ctype v = (ctype)((r + i) % 5 + 1);                       \
                    wanted = (ctype)(step);                                         \
                }                                                                   \
                if (rank == 0) wanted = in[i]; /* of one operand */                 \
                CHECK(out[i] == wanted, "%s %s scanned element %d", #type, #op, i); \
            }                                                                       \
            free(in);                                                               \
            free(out);                                                              \
        }                                                                           \
    } while (0)

static void predefined(MPI_Comm comm, int rank, int size) {
    PREDEFINED(int, MPI_INT, MPI_SUM, 0, wanted + v);
    PREDEFINED(int, MPI_INT, MPI_MAX, 0, wanted > v ? wanted : v);
    PREDEFINED(short, MPI_SHORT, MPI_MIN, 100, wanted < v ? wanted : v);
    PREDEFINED(unsigned char, MPI_UNSIGNED_CHAR, MPI_BXOR, 0, wanted ^ v);
    PREDEFINED(unsigned char, MPI_BYTE, MPI_BOR, 0, wanted | v);
    PREDEFINED(long, MPI_LONG, MPI_PROD, 1, wanted* v);
    PREDEFINED(unsigned, MPI_UNSIGNED, MPI_LAND, 1, wanted&& v);
    PREDEFINED(int, MPI_INT, MPI_LXOR, 0, (!wanted) != (!v));
    PREDEFINED(long long, MPI_LONG_LONG, MPI_BAND, -1, wanted& v);
    PREDEFINED(float, MPI_FLOAT, MPI_SUM, 0, wanted + v);
    PREDEFINED(double, MPI_DOUBLE, MPI_PROD, 1, wanted* v);
    PREDEFINED(long double, MPI_LONG_DOUBLE, MPI_SUM, 0, wanted + v);
    PREDEFINED(long double, MPI_LONG_DOUBLE, plus, 0, wanted + v);
    PREDEFINED(double complex, MPI_C_DOUBLE_COMPLEX, MPI_SUM, 0, wanted + v);
}

static void places(MPI_Comm comm, int rank, int size) {
    struct {
        double value;
        int index;
    } in[3], least[3];
    struct {
        int value;
        int index;
    } most[3] = {{rank % 3, rank}, {-rank, rank}, {5, rank}};
    for (int i = 0; i < 3; ++i) {
        in[i].value = i == 0 ? -rank : i == 1 ? rank % 2 : 3.5;
        in[i].index = rank;
    }
    MPI_Allreduce(in, least, 3, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    CHECK(least[0].value == 1 - size && least[0].index == size - 1, "the least");
    CHECK(least[1].value == 0 && least[1].index == 0, "the first of equals");
    CHECK(least[2].value == 3.5 && least[2].index == 0, "all equal");
    MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_2INT, MPI_MAXLOC, comm);
    CHECK(most[0].value == (size > 2 ? 2 : size - 1), "the greatest");
    CHECK(most[1].value == 0 && most[1].index == 0, "the greatest is rank 0's");
    CHECK(most[2].value == 5 && most[2].index == 0, "all equal");
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int lengths[2] = {2, 2};
    MPI_Aint offsets[2] = {offsetof(matrix, a), offsetof(matrix, c)};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Datatype whole;
    MPI_Type_create_struct(2, lengths, offsets, types, &whole);
    MPI_Type_create_resized(whole, 0, sizeof(matrix), &matrix_type);
    MPI_Type_commit(&matrix_type);
    MPI_Op_create(multiply, 0, &times);
    MPI_Op_create(add, 1, &plus);
    users(MPI_COMM_WORLD, rank, size);
    predefined(MPI_COMM_WORLD, rank, size);
    places(MPI_COMM_WORLD, rank, size);
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    users(reversed, size - 1 - rank, size);
    MPI_Comm_free(&reversed);
    MPI_Op_free(&times);
    MPI_Op_free(&plus);
    return finish();
}
