/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided communication: put, get, accumulate, fetch_and_op and compare_and_swap, between fences,
 * under locks with flushes, and in start and post epochs. The target computes meanwhile.
 *   mpirun -n N windows [create]
 * create: of memory that the program has, which no MPI shares between the ranks of one machine; and
 * dynamic windows. */
#include "check.h"

enum { kInts = 1000, kRounds = 20, kLarge = 300000, kMemory = kLarge + 2 * kInts };

static void fences(MPI_Win window, int* memory, int rank, int size) {
    const int to = (rank + 1) % size;
    const int from = (rank + size - 1) % size;
    int* out = ints(kInts);
    int* in = ints(kInts);
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kInts; ++i)
            out[i] = rank * 1000000 + round * 1000 + i;
        MPI_Win_fence(0, window);
        MPI_Put(out, kInts, MPI_INT, to, 0, kInts, MPI_INT, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < kInts; ++i)
            CHECK(memory[i] == from * 1000000 + round * 1000 + i, "put %d of round %d", i, round);
        MPI_Win_fence(0, window);
        MPI_Get(in, kInts, MPI_INT, to, 0, kInts, MPI_INT, window);
        MPI_Win_fence(0, window);
        CHECK(memcmp(in, out, kInts * sizeof(int)) == 0, "get of round %d", round);
    }
    free(out);
    free(in);
}

static void sums(MPI_Win window, int* memory, int size) {
    const int one = 1;
    MPI_Win_fence(0, window);
    memory[0] = 0;
    MPI_Win_fence(0, window);
    for (int target = 0; target < size; ++target)
        MPI_Accumulate(&one, 1, MPI_INT, target, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    CHECK(memory[0] == size, "%d of %d accumulated", memory[0], size);
}

/* All take numbers from rank 0, which computes: each number comes once. */
static void locks(MPI_Win window, int* memory, int rank, int size) {
    enum { kTickets = 25 };
    int taken[kTickets];
    const int one = 1;
    MPI_Win_fence(0, window);
    memory[0] = 0;
    memory[1] = 0;
    MPI_Win_fence(0, window);
    volatile double work = 0;
    for (int i = 0; rank == 0 && i < 2000000; ++i)
        work += i;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    for (int i = 0; i < kTickets; ++i) {
        MPI_Fetch_and_op(&one, &taken[i], MPI_INT, 0, 0, MPI_SUM, window);
        MPI_Win_flush(0, window);
        CHECK(i == 0 || taken[i] > taken[i - 1], "ticket %d after %d", taken[i], taken[i - 1]);
    }
    MPI_Win_unlock(0, window);
    int least = 0;
    int most = 0;
    int sum = 0;
    int all = 0;
    for (int i = 0; i < kTickets; ++i)
        sum += taken[i];
    MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    const int tickets = kTickets * size;
    CHECK(all == tickets * (tickets - 1) / 2, "the tickets add up to %d", all);
    MPI_Allreduce(&taken[0], &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&taken[kTickets - 1], &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(least == 0 && most == tickets - 1, "tickets from %d to %d", least, most);
    /* One swaps the second word, the others find it taken. */
    const int mine = rank + 1;
    const int nobody = 0;
    int found = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Compare_and_swap(&mine, &nobody, &found, MPI_INT, 0, 1, window);
    MPI_Win_unlock(0, window);
    const int won = found == 0;
    int winners = 0;
    MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(winners == 1, "%d ranks swapped", winners);
}

/* Each rank writes to all and reads from all, completed by flushes. */
static void all_at_once(MPI_Win window, int* memory, int rank, int size) {
    int value;
    MPI_Win_lock_all(0, window);
    for (int round = 0; round < kRounds; ++round) {
        value = rank * 1000 + round;
        for (int target = 0; target < size; ++target)
            MPI_Put(&value, 1, MPI_INT, target, 10 + rank, 1, MPI_INT, window);
        MPI_Win_flush_all(window);
        for (int target = 0; target < size; ++target) {
            int there = -1;
            MPI_Get(&there, 1, MPI_INT, target, 10 + rank, 1, MPI_INT, window);
            MPI_Win_flush(target, window);
            CHECK(there == value, "%d at %d in round %d", there, target, round);
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int from = 0; from < size; ++from)
        CHECK(memory[10 + from] == from * 1000 + kRounds - 1, "%d of %d", memory[10 + from], from);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* More than what travels with a request, in one piece, with gaps, and by requests. */
static void large(MPI_Win window, int* memory, int rank, int size) {
    const int to = (rank + 1) % size;
    const int from = (rank + size - 1) % size;
    int* out = ints(kLarge);
    int* in = ints(kLarge);
    MPI_Datatype gaps;
    MPI_Type_vector(kLarge / 2, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    for (int i = 0; i < kLarge; ++i)
        out[i] = rank + i;
    MPI_Win_fence(0, window);
    MPI_Put(out, kLarge, MPI_INT, to, kInts, kLarge, MPI_INT, window);
    MPI_Win_fence(0, window);
    int wrong = 0;
    for (int i = 0; i < kLarge; ++i)
        wrong += memory[kInts + i] != from + i;
    CHECK(wrong == 0, "%d of a large put", wrong);
    MPI_Get(in, kLarge / 2, MPI_INT, to, kInts, 1, gaps, window);
    MPI_Win_fence(0, window);
    wrong = 0;
    for (int i = 0; i < kLarge / 2; ++i)
        wrong += in[i] != rank + 2 * i;
    CHECK(wrong == 0, "%d of a get with gaps", wrong);
    MPI_Win_lock_all(0, window);
    MPI_Request requests[2];
    MPI_Rput(out, kLarge / 2, MPI_INT, to, kInts, kLarge / 2, MPI_INT, window, &requests[0]);
    MPI_Rget(in, kInts, MPI_INT, to, kInts + kLarge / 2, kInts, MPI_INT, window, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(window);
    CHECK(in[0] == rank + kLarge / 2, "%d of a get by request", in[0]);
    MPI_Type_free(&gaps);
    free(out);
    free(in);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Accumulates of one origin are applied in their order. */
static void in_order(MPI_Win window, int* memory, int rank, int size) {
    const int to = (rank + 1) % size;
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window);
    for (int i = 0; i < 100; ++i)
        MPI_Accumulate(&i, 1, MPI_INT, to, 20, 1, MPI_INT, MPI_REPLACE, window);
    int last = -1;
    int one = 1;
    MPI_Get_accumulate(&one, 1, MPI_INT, &last, 1, MPI_INT, to, 20, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_flush(to, window);
    CHECK(last == 99, "%d was there last", last);
    MPI_Get_accumulate(NULL, 0, MPI_INT, &last, 1, MPI_INT, to, 20, 1, MPI_INT, MPI_NO_OP, window);
    MPI_Win_unlock(to, window);
    CHECK(last == 100, "%d is there", last);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Doubles, many at once, by all. */
    double* values = malloc(kInts * sizeof *values);
    for (int i = 0; i < kInts; ++i)
        values[i] = rank + i;
    MPI_Win_fence(0, window);
    memset(memory, 0, kInts * sizeof *values);
    MPI_Win_fence(0, window);
    MPI_Accumulate(values, kInts, MPI_DOUBLE, 0, 0, kInts, MPI_DOUBLE, MPI_MAX, window);
    MPI_Win_fence(0, window);
    double most = 0;
    memcpy(&most, memory + 2 * 5, sizeof most);
    CHECK(rank != 0 || most == size - 1 + 5, "%g is the most", most);
    MPI_Win_fence(0, window);
    free(values);
}

/* A window to which memory is attached later. */
static void dynamic(int rank, int size) {
    const int to = (rank + 1) % size;
    const int from = (rank + size - 1) % size;
    MPI_Win window;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    int* memory = ints(kInts);
    MPI_Win_attach(window, memory, kInts * sizeof(int));
    MPI_Aint here;
    MPI_Aint there;
    MPI_Get_address(memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, from, 0, &there, 1, MPI_AINT, to, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, to, there + 4 * sizeof(int), 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(memory[4] == from, "%d in a dynamic window", memory[4]);
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
    free(memory);
}

/* Neighbours alone: the lower one exposes its window, the higher one writes. */
static void epochs(MPI_Win window, int* memory, int rank, int size) {
    const int partner = rank ^ 1;
    if (partner >= size) return;
    MPI_Group world;
    MPI_Group other;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &partner, &other);
    for (int round = 0; round < kRounds; ++round) {
        if (rank % 2 == 0) {
            memory[2] = -1;
            MPI_Win_post(other, 0, window);
            MPI_Win_wait(window);
            CHECK(memory[2] == round, "%d in round %d", memory[2], round);
        } else {
            MPI_Win_start(other, 0, window);
            MPI_Put(&round, 1, MPI_INT, partner, 2, 1, MPI_INT, window);
            MPI_Win_complete(window);
        }
    }
    MPI_Group_free(&other);
    MPI_Group_free(&world);
}

int main(int argc, char** argv) {
    int rank;
    int size;
    int* memory;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int create = argc > 1;
    const MPI_Aint bytes = kMemory * sizeof(int);
    if (create) {
        memory = ints(kMemory);
        MPI_Win_create(memory, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    } else {
        MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    }
    fences(window, memory, rank, size);
    sums(window, memory, size);
    locks(window, memory, rank, size);
    MPI_Barrier(MPI_COMM_WORLD);
    epochs(window, memory, rank, size);
    MPI_Barrier(MPI_COMM_WORLD);
    all_at_once(window, memory, rank, size);
    large(window, memory, rank, size);
    in_order(window, memory, rank, size);
    if (create) dynamic(rank, size);
    MPI_Win_free(&window);
    if (create) free(memory);
    return finish();
}
