/* SPDX-License-Identifier: BSD-3-Clause */
/* A message, broadcasts and a gather of many MiB each. From 2048 on, bytes and, in the large-count
 * forms of MPI 4, elements are beyond 2^31. The number of ranks is a power of two.
 *   mpirun -n N large [MEBIBYTES] */
#include "check.h"

enum { kMebibyte = 1 << 20, kWord = sizeof(unsigned long), kUntouched = 0x77 };

static int rank, size;
static int mebibytes = 8;
static unsigned long* memory;
static size_t words;

static unsigned long word_at(size_t i, int round) {
    return i * 0x9e3779b97f4a7c15UL + (unsigned long)round;
}
static void fill(int round) {
    for (size_t i = 0; i < words; ++i)
        memory[i] = word_at(i, round);
    memory[words] = kUntouched;
}
static void wipe(void) {
    for (size_t i = 0; i <= words; ++i)
        memory[i] = kUntouched;
}
static void compare(const char* what, int round) {
    size_t wrong = 0;
    size_t first = 0;
    for (size_t i = 0; i < words; ++i)
        if (memory[i] != word_at(i, round) && wrong++ == 0) first = i;
    CHECK(wrong == 0, "%s: %zu of %zu words differ, the first at %zu", what, wrong, words, first);
    CHECK(memory[words] == kUntouched, "%s: written behind the buffer", what);
}

/* The count of MPI 3 is an int, so that an element has 1 MiB. */
static void by_long_elements(void) {
    MPI_Datatype element;
    MPI_Type_contiguous(kMebibyte, MPI_BYTE, &element);
    MPI_Type_commit(&element);
    if (rank == 0) {
        fill(1);
        MPI_Send(memory, mebibytes, element, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Status status;
        int count = 0;
        wipe();
        MPI_Recv(memory, mebibytes, element, 0, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, element, &count);
        CHECK(count == mebibytes, "%d elements", count);
        compare("message", 1);
    }
    if (rank == size - 1)
        fill(2);
    else
        wipe();
    MPI_Bcast(memory, mebibytes, element, size - 1, MPI_COMM_WORLD);
    compare("broadcast", 2);
    MPI_Type_free(&element);
}

/* The type of the elements is packed: the last word of each MiB is not theirs. */
static void with_gaps(void) {
    const size_t each = kMebibyte / kWord;
    MPI_Datatype body;
    MPI_Datatype element;
    MPI_Type_contiguous(kMebibyte - kWord, MPI_BYTE, &body);
    MPI_Type_create_resized(body, 0, kMebibyte, &element);
    MPI_Type_commit(&element);
    if (rank == 0)
        fill(3);
    else
        wipe();
    MPI_Bcast(memory, mebibytes, element, 0, MPI_COMM_WORLD);
    for (size_t i = each - 1; rank != 0 && i < words; i += each) {
        CHECK(memory[i] == kUntouched, "gap of element %zu", i / each);
        memory[i] = word_at(i, 3);
    }
    compare("broadcast with gaps", 3);
    MPI_Type_free(&body);
    MPI_Type_free(&element);
}

/* Each member has a part of the whole, which is as large as the other messages. */
static void gathered(void) {
    const size_t part = words / (size_t)size;
    unsigned long* mine = memory + (size_t)rank * part;
    wipe();
    for (size_t i = 0; i < part; ++i)
        mine[i] = word_at((size_t)rank * part + i, 4);
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : mine, (int)part, MPI_UNSIGNED_LONG, memory, (int)part,
               MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0) compare("gather", 4);
}

#if MPI_VERSION >= 4
static void by_large_counts(void) {
    const MPI_Count bytes = (MPI_Count)mebibytes * kMebibyte;
    if (rank == 0) {
        fill(5);
        MPI_Send_c(memory, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Status status;
        MPI_Count count = 0;
        wipe();
        MPI_Recv_c(memory, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count_c(&status, MPI_BYTE, &count);
        CHECK(count == bytes, "%lld bytes", (long long)count);
        compare("message", 5);
    }
    if (rank == 0)
        fill(6);
    else
        wipe();
    MPI_Bcast_c(memory, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    compare("broadcast", 6);
    for (size_t i = 0; i < words; ++i)
        memory[i] = rank == 0 ? word_at(i, 7) : 0;
    MPI_Allreduce_c(MPI_IN_PLACE, memory, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    compare("allreduce", 7);
}
#endif

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1) mebibytes = atoi(argv[1]);
    words = (size_t)mebibytes * (kMebibyte / kWord);
    memory = malloc((words + 1) * kWord);
    if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
    by_long_elements();
    with_gaps();
    gathered();
#if MPI_VERSION >= 4
    by_large_counts();
#endif
    free(memory);
    return finish();
}
