/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Alltoallw and MPI_Ialltoallw: a length, a displacement and a type for each pair of ranks, of
 * which some have gaps at one end only, in place and not, on the world and a reversed split.
 *   mpirun -n N typed */
#include "tests/process/mpi/check.h"

/* Pairs of ranks exchange ints or doubles, up to 2 * kLong of them. */
enum { kLong = 5000 };

static int is_of_doubles(int a, int b) { return (a + b) % 2; }
static double value(int from, int to, int i) { return from * 1000003.0 + to * 1009.0 + i; }

/* By whether its elements are doubles and whether a gap is behind each. */
static MPI_Datatype types[2][2];

/* One member's side of an exchange. */
typedef struct side {
    unsigned char* memory;
    int* counts;
    int* displacements;
    MPI_Datatype* types;
    int* steps; /* bytes from one element to the next */
} side;

static void put(const side* s, int peer, int i, int doubles, double what) {
    unsigned char* at = s->memory + s->displacements[peer] + (size_t)i * (size_t)s->steps[peer];
    const int whole = (int)what;
    memcpy(at, doubles ? (void*)&what : (void*)&whole, doubles ? sizeof what : sizeof whole);
}
static double get(const side* s, int peer, int i, int doubles) {
    const unsigned char* at =
        s->memory + s->displacements[peer] + (size_t)i * (size_t)s->steps[peer];
    double what;
    int whole;
    memcpy(doubles ? (void*)&what : (void*)&whole, at, doubles ? sizeof what : sizeof whole);
    return doubles ? what : whole;
}
/* Gaps keep their bytes. */
static void check_gaps(const side* s, int peer, int doubles) {
    const int bytes = doubles ? (int)sizeof(double) : (int)sizeof(int);
    for (int i = 0; i < s->counts[peer]; ++i)
        for (int b = bytes; b < s->steps[peer]; ++b)
            CHECK(s->memory[s->displacements[peer] + i * s->steps[peer] + b] == 0x5A,
                  "gap behind %d of %d", i, peer);
}

/* The blocks lie in descending order of ranks, 8 bytes apart. */
static side make_side(int rank, int size, int unit, int symmetric, int gaps_of) {
    side s = {NULL, ints((size_t)size), ints((size_t)size),
              malloc((size_t)size * sizeof(MPI_Datatype)), ints((size_t)size)};
    int total = 0;
    for (int r = size - 1; r >= 0; --r) {
        const int doubles = is_of_doubles(rank, r);
        const int gapped = gaps_of > 0 && (rank + 2 * r) % gaps_of == 0;
        s.counts[r] = symmetric ? (rank + r) % 3 * unit : 0;
        s.types[r] = types[doubles][gapped];
        s.steps[r] = (doubles ? 8 : 4) << gapped;
        s.displacements[r] = total;
        total += s.steps[r] * 2 * unit + 8;
    }
    s.memory = malloc((size_t)total + 8);
    memset(s.memory, 0x5A, (size_t)total + 8);
    return s;
}
static void free_side(side s) {
    free(s.memory);
    free(s.counts);
    free(s.displacements);
    free(s.types);
    free(s.steps);
}

static void exchange(MPI_Comm comm, int unit, int in_place, int gaps, int non_blocking) {
    int rank;
    int size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    side from = make_side(rank, size, unit, in_place, in_place ? 0 : gaps);
    side to = make_side(rank, size, unit, in_place, gaps > 0 ? gaps + 1 : 0);
    for (int r = 0; r < size; ++r) {
        if (!in_place) {
            from.counts[r] = (rank + 2 * r) % 3 * unit;
            to.counts[r] = (r + 2 * rank) % 3 * unit;
        }
        for (int i = 0; i < from.counts[r]; ++i)
            put(in_place ? &to : &from, r, i, is_of_doubles(rank, r), value(rank, r, i));
    }
    const void* in = in_place ? MPI_IN_PLACE : from.memory;
    if (non_blocking) {
        MPI_Request request;
        MPI_Ialltoallw(in, from.counts, from.displacements, from.types, to.memory, to.counts,
                       to.displacements, to.types, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Alltoallw(in, from.counts, from.displacements, from.types, to.memory, to.counts,
                      to.displacements, to.types, comm);
    }
    for (int r = 0; r < size; ++r) {
        const int doubles = is_of_doubles(rank, r);
        for (int i = 0; i < to.counts[r]; ++i)
            CHECK(get(&to, r, i, doubles) == value(r, rank, i),
                  "unit %d in place %d gaps %d non-blocking %d: from %d element %d is %f", unit,
                  in_place, gaps, non_blocking, r, i, get(&to, r, i, doubles));
        check_gaps(&to, r, doubles);
    }
    free_side(from);
    free_side(to);
}

static void all(MPI_Comm comm) {
    const int units[] = {0, 1, 40, kLong};
    MPI_Barrier(comm);
    for (int u = 0; u < 4; ++u) {
        for (int turn = 0; turn < 12; ++turn) {
            const int in_place = turn & 1;
            const int non_blocking = turn >> 1 & 1;
            /* Open MPI 4.1 alone gives wrong results of long ones. */
            if (in_place && non_blocking && units[u] == kLong) continue;
            exchange(comm, units[u], in_place, turn / 4, non_blocking);
        }
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    types[0][0] = MPI_INT;
    types[1][0] = MPI_DOUBLE;
    for (int doubles = 0; doubles < 2; ++doubles) {
        MPI_Type_create_resized(types[doubles][0], 0, doubles ? 16 : 8, &types[doubles][1]);
        MPI_Type_commit(&types[doubles][1]);
    }
    all(MPI_COMM_WORLD);
    MPI_Comm other;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, -rank, &other);
    if (other != MPI_COMM_NULL) {
        all(other);
        MPI_Comm_free(&other);
    }
    for (int doubles = 0; doubles < 2; ++doubles)
        MPI_Type_free(&types[doubles][1]);
    return finish();
}
