/* One-sided communication: put, get, accumulate, fetch_and_op and compare_and_swap, between fences,
 * under locks with flushes, and in start and post epochs. The target computes meanwhile.
 *   mpirun -n N windows */
#include "check.h"

enum { kInts = 1000, kRounds = 20 };

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
    MPI_Win_allocate(2 * kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    fences(window, memory, rank, size);
    sums(window, memory, size);
    locks(window, memory, rank, size);
    MPI_Barrier(MPI_COMM_WORLD);
    epochs(window, memory, rank, size);
    MPI_Win_free(&window);
    return finish();
}
