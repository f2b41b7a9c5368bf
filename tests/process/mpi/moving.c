/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast, gather, scatter, allgather, alltoall and their v forms: every root, several lengths,
 * in place, with types that have gaps at some members only, on the world and a reversed split.
 *   mpirun -n N moving */
#include "check.h"

static int value(int from, int to, int i) { return from * 1000003 + to * 1009 + i; }

/* Ints with a gap behind each; `gapped` members use it, the others plain ints. */
static MPI_Datatype gaps_type;

typedef struct side {
    MPI_Datatype type;
    int stride; /* ints from one element to the next */
} side;
static side side_of(int gapped) {
    const side with = {gaps_type, 2};
    const side without = {MPI_INT, 1};
    return gapped ? with : without;
}
/* Gaps must stay as they were. */
static void check_gaps(const int* memory, size_t count, side s) {
    for (size_t i = 0; s.stride == 2 && i < count; ++i)
        CHECK(memory[2 * i + 1] == -7, "gap %zu was written", i);
}

static const int lengths[] = {0, 1, 7, 1000, 40001};

static void bcasts(MPI_Comm comm, int rank, int size) {
    for (int l = 0; l < 5; ++l) {
        const int n = lengths[l];
        for (int root = 0; root < size; ++root) {
            /* A vector at the root and plain ints elsewhere, and the other way round. */
            for (int turn = 0; turn < 3; ++turn) {
                const side s = side_of(turn == 0 ? rank == root : turn == 1 ? rank != root : 0);
                int* data = ints((size_t)n * 2);
                for (int i = 0; rank == root && i < n; ++i)
                    data[i * s.stride] = value(root, turn, i);
                MPI_Bcast(data, n, s.type, root, comm);
                for (int i = 0; i < n; ++i)
                    CHECK(data[i * s.stride] == value(root, turn, i), "element %d is %d", i,
                          data[i * s.stride]);
                check_gaps(data, (size_t)n, s);
                free(data);
            }
        }
    }
}

static void gathers(MPI_Comm comm, int rank, int size) {
    for (int l = 0; l < 4; ++l) {
        const int n = lengths[l];
        for (int root = 0; root < size; ++root) {
            for (int turn = 0; turn < 4; ++turn) {
                const side from = side_of(turn & 1 && rank % 2);
                const side to = side_of(turn == 2);
                const int in_place = turn >= 2 && rank == root;
                int* in = ints((size_t)n * 2);
                int* out = ints((size_t)n * (size_t)size * 2);
                for (int i = 0; i < n; ++i) {
                    in[i * from.stride] = value(rank, root, i);
                    if (in_place) out[(rank * n + i) * to.stride] = value(rank, root, i);
                }
                MPI_Gather(in_place ? MPI_IN_PLACE : in, n, from.type, rank == root ? out : NULL, n,
                           to.type, root, comm);
                for (int r = 0; rank == root && r < size; ++r)
                    for (int i = 0; i < n; ++i)
                        CHECK(out[(r * n + i) * to.stride] == value(r, root, i), "block %d", r);
                if (rank == root) check_gaps(out, (size_t)n * (size_t)size, to);
                free(in);
                free(out);
            }
        }
    }
}

static void scatters(MPI_Comm comm, int rank, int size) {
    for (int l = 0; l < 4; ++l) {
        const int n = lengths[l];
        for (int root = 0; root < size; ++root) {
            for (int turn = 0; turn < 4; ++turn) {
                const side from = side_of(turn == 2);
                const side to = side_of(turn & 1 && rank % 2);
                const int in_place = turn >= 2 && rank == root;
                int* in = ints((size_t)n * (size_t)size * 2);
                int* out = ints((size_t)n * 2);
                for (int i = 0; i < n * size; ++i)
                    in[i * from.stride] = value(root, i / (n ? n : 1), i % (n ? n : 1));
                MPI_Scatter(rank == root ? in : NULL, n, from.type, in_place ? MPI_IN_PLACE : out,
                            n, to.type, root, comm);
                for (int i = 0; !in_place && i < n; ++i)
                    CHECK(out[i * to.stride] == value(root, rank, i), "element %d", i);
                check_gaps(out, (size_t)n, to);
                free(in);
                free(out);
            }
        }
    }
}

/* Blocks by rank: of different lengths, in descending order, with gaps between them. */
typedef struct layout {
    int* counts;
    int* displacements;
    int total;
} layout;
static layout layout_of(int size, int unit, int shift) {
    layout l = {ints((size_t)size), ints((size_t)size), 0};
    for (int r = size - 1; r >= 0; --r) {
        l.counts[r] = (r + shift) % 3 * unit;
        l.displacements[r] = l.total;
        l.total += l.counts[r] + 2;
    }
    return l;
}
static void free_layout(layout l) {
    free(l.counts);
    free(l.displacements);
}

static void by_rank(MPI_Comm comm, int rank, int size) {
    for (int turn = 0; turn < 8; ++turn) {
        const int unit = turn & 4 ? 5000 : 3;
        const side blocks = side_of(turn & 1);
        const side own = side_of(turn & 1 && rank % 2);
        const layout l = layout_of(size, unit, turn);
        const int mine = l.counts[rank];
        for (int root = 0; root < size; ++root) {
            const int in_place = turn & 2 && rank == root;
            int* one = ints((size_t)mine * 2);
            int* all = ints((size_t)l.total * 2);
            for (int i = 0; i < mine; ++i) {
                one[i * own.stride] = value(rank, root, i);
                if (in_place)
                    all[(l.displacements[rank] + i) * blocks.stride] = value(rank, root, i);
            }
            MPI_Gatherv(in_place ? MPI_IN_PLACE : one, mine, own.type, all,
                        rank == root ? l.counts : NULL, rank == root ? l.displacements : NULL,
                        blocks.type, root, comm);
            for (int r = 0; rank == root && r < size; ++r) {
                for (int i = 0; i < l.counts[r]; ++i)
                    CHECK(all[(l.displacements[r] + i) * blocks.stride] == value(r, root, i),
                          "block %d element %d", r, i);
                CHECK(all[(l.displacements[r] + l.counts[r]) * blocks.stride] == -7,
                      "behind block %d", r);
            }
            /* And back, doubled. */
            for (int i = 0; rank == root && i < l.total; ++i)
                all[i * blocks.stride] *= 2;
            MPI_Scatterv(rank == root ? all : NULL, rank == root ? l.counts : NULL,
                         rank == root ? l.displacements : NULL, blocks.type,
                         in_place ? MPI_IN_PLACE : one, mine, own.type, root, comm);
            for (int i = 0; !in_place && i < mine; ++i)
                CHECK(one[i * own.stride] == 2 * value(rank, root, i), "element %d", i);
            free(one);
            free(all);
        }
        int* one = ints((size_t)mine * 2);
        int* all = ints((size_t)l.total * 2);
        const int in_place = (turn & 2) != 0;
        for (int i = 0; i < mine; ++i) {
            one[i * own.stride] = value(rank, 0, i);
            if (in_place) all[(l.displacements[rank] + i) * blocks.stride] = value(rank, 0, i);
        }
        MPI_Allgatherv(in_place ? MPI_IN_PLACE : one, mine, own.type, all, l.counts,
                       l.displacements, blocks.type, comm);
        for (int r = 0; r < size; ++r)
            for (int i = 0; i < l.counts[r]; ++i)
                CHECK(all[(l.displacements[r] + i) * blocks.stride] == value(r, 0, i),
                      "block %d element %d", r, i);
        free(one);
        free(all);
        free_layout(l);
    }
}

static void all_to_all(MPI_Comm comm, int rank, int size) {
    for (int l = 0; l < 4; ++l) {
        const int n = lengths[l];
        for (int turn = 0; turn < 4; ++turn) {
            const side from = side_of(turn == 1 && rank % 2);
            const side to = side_of(turn >= 2 && rank % 2 == 0);
            const int in_place = turn == 3;
            const side first = in_place ? to : from;
            int* in = ints((size_t)n * (size_t)size * 2);
            int* out = ints((size_t)n * (size_t)size * 2);
            int* given = in_place ? out : in;
            for (int r = 0; r < size; ++r)
                for (int i = 0; i < n; ++i)
                    given[(r * n + i) * first.stride] = value(rank, r, i);
            MPI_Alltoall(in_place ? MPI_IN_PLACE : in, n, from.type, out, n, to.type, comm);
            for (int r = 0; r < size; ++r)
                for (int i = 0; i < n; ++i)
                    CHECK(out[(r * n + i) * to.stride] == value(r, rank, i), "from %d", r);
            check_gaps(out, (size_t)n * (size_t)size, to);
            /* Own block in place for the allgather. */
            const int own_in_place = turn & 1;
            const side one = side_of(turn == 2);
            for (int i = 0; i < n; ++i) {
                in[i * one.stride] = value(rank, 5, i);
                if (own_in_place) out[(rank * n + i) * to.stride] = value(rank, 5, i);
            }
            MPI_Allgather(own_in_place ? MPI_IN_PLACE : in, n, one.type, out, n, to.type, comm);
            for (int r = 0; r < size; ++r)
                for (int i = 0; i < n; ++i)
                    CHECK(out[(r * n + i) * to.stride] == value(r, 5, i), "of %d", r);
            free(in);
            free(out);
        }
    }
    for (int turn = 0; turn < 4; ++turn) {
        /* From s to r go (s + 2 r) % 4 * 50 elements; in place as many back. */
        const int in_place = turn & 1;
        const side to = side_of(turn & 2 && rank % 2);
        layout from_l = layout_of(size, 1, 0);
        layout to_l = layout_of(size, 1, 0);
        from_l.total = to_l.total = 0;
        for (int r = 0; r < size; ++r) {
            from_l.counts[r] = in_place ? (rank + r) % 4 * 50 : (rank + 2 * r) % 4 * 50;
            to_l.counts[r] = in_place ? (rank + r) % 4 * 50 : (r + 2 * rank) % 4 * 50;
            from_l.displacements[r] = from_l.total;
            to_l.displacements[r] = to_l.total + 1;
            from_l.total += from_l.counts[r];
            to_l.total += to_l.counts[r] + 1;
        }
        int* in = ints((size_t)from_l.total * 2);
        int* out = ints((size_t)to_l.total * 2);
        for (int r = 0; r < size; ++r) {
            for (int i = 0; i < from_l.counts[r]; ++i) {
                in[from_l.displacements[r] + i] = value(rank, r, i);
                if (in_place) out[(to_l.displacements[r] + i) * to.stride] = value(rank, r, i);
            }
        }
        MPI_Alltoallv(in_place ? MPI_IN_PLACE : in, from_l.counts, from_l.displacements, MPI_INT,
                      out, to_l.counts, to_l.displacements, to.type, comm);
        for (int r = 0; r < size; ++r)
            for (int i = 0; i < to_l.counts[r]; ++i)
                CHECK(out[(to_l.displacements[r] + i) * to.stride] == value(r, rank, i),
                      "from %d element %d", r, i);
        free(in);
        free(out);
        free_layout(from_l);
        free_layout(to_l);
    }
}

/* A type of absolute addresses: two variables far apart. */
static void from_bottom(MPI_Comm comm, int rank) {
    int* one = ints(10);
    int* other = ints(5000);
    MPI_Aint places[2];
    int counts[2] = {10, 5000};
    MPI_Datatype type;
    MPI_Get_address(one, &places[0]);
    MPI_Get_address(other, &places[1]);
    MPI_Type_create_hindexed(2, counts, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; rank == 0 && i < 10; ++i)
        one[i] = i;
    for (int i = 0; rank == 0 && i < 5000; ++i)
        other[i] = 100 + i;
    MPI_Bcast(MPI_BOTTOM, 1, type, 0, comm);
    for (int i = 0; i < 10; ++i)
        CHECK(one[i] == i, "element %d", i);
    for (int i = 0; i < 5000; ++i)
        CHECK(other[i] == 100 + i, "element %d", i);
    MPI_Type_free(&type);
    free(one);
    free(other);
}

static void all(MPI_Comm comm) {
    int rank;
    int size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    bcasts(comm, rank, size);
    gathers(comm, rank, size);
    scatters(comm, rank, size);
    by_rank(comm, rank, size);
    all_to_all(comm, rank, size);
    from_bottom(comm, rank);
    MPI_Barrier(comm);
}

/* An int and a double, packed 12 bytes: a border between two pieces of a long broadcast lies within
 * a double. Even ranks have 20 bytes from one to the next, odd ones 12. */
static void broadcast_long_structures(int rank, int size, int count) {
    const int step = rank % 2 == 0 ? 20 : 12;
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, rank % 2 == 0 ? 8 : 4};
    const MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype whole;
    MPI_Datatype type;
    MPI_Type_create_struct(2, lengths, places, parts, &whole);
    MPI_Type_create_resized(whole, 0, step, &type);
    MPI_Type_commit(&type);
    unsigned char* data = malloc((size_t)count * 20);
    for (int turn = 0; turn < 4; ++turn) {
        const int root = turn % size;
        memset(data, 0x5A, (size_t)count * 20);
        for (int i = 0; rank == root && i < count; ++i) {
            const double value = 0.5 * i + turn;
            memcpy(data + (size_t)i * (size_t)step, &i, sizeof i);
            memcpy(data + (size_t)i * (size_t)step + places[1], &value, sizeof value);
        }
        if (turn < 2) {
            MPI_Bcast(data, count, type, root, MPI_COMM_WORLD);
        } else {
            MPI_Request requests[2];
            int behind = rank == root ? turn : -1;
            MPI_Ibcast(data, count, type, root, MPI_COMM_WORLD, &requests[0]);
            MPI_Ibcast(&behind, 1, MPI_INT, root, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            CHECK(behind == turn, "behind: %d", behind);
        }
        for (int i = 0; i < count; ++i) {
            const unsigned char* at = data + (size_t)i * (size_t)step;
            int first;
            double second;
            memcpy(&first, at, sizeof first);
            memcpy(&second, at + places[1], sizeof second);
            CHECK(first == i && second == 0.5 * i + turn, "structure %d of turn %d", i, turn);
            if (step == 20) CHECK(at[4] == 0x5A && at[19] == 0x5A, "gap %d was written", i);
        }
    }
    free(data);
    MPI_Type_free(&type);
    MPI_Type_free(&whole);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps_type);
    MPI_Type_commit(&gaps_type);
    MPI_Comm other;
    all(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, -rank, &other);
    if (other != MPI_COMM_NULL) {
        all(other);
        MPI_Comm_free(&other);
    }
    MPI_Type_free(&gaps_type);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    broadcast_long_structures(rank, size, 130001); /* 1.5 MiB packed */
    return finish();
}
