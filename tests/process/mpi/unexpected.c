/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for which no receive is posted: a long one before an awaited short one, very many small
 * ones and many of middle size, wildcards over several communicators, long synchronous sends that
 * are probed.
 *   mpirun -n N unexpected [MEBIBYTES [SMALL]] */
#include "check.h"

static int rank, size;

/* A long message with tag 1 is under way; the awaited one with tag 2 comes behind it. */
static void large_before_awaited(size_t mebibytes) {
    const size_t ints_each = (1U << 20) / sizeof(int);
    const size_t count = mebibytes * ints_each;
    int word = 0;
    if (rank == 0) {
        MPI_Request request;
        int* out = ints(count);
        for (size_t i = 0; i < count; ++i)
            out[i] = (int)(i * 3 + 1);
        MPI_Isend(out, (int)count, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        word = 4711;
        MPI_Send(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        free(out);
    } else if (rank == 1) {
        int* in = ints(count);
        MPI_Recv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(word == 4711, "%d", word);
        MPI_Recv(in, (int)count, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        size_t wrong = 0;
        for (size_t i = 0; i < count; ++i)
            wrong += in[i] != (int)(i * 3 + 1);
        CHECK(wrong == 0, "%zu of %zu words differ", wrong, count);
        CHECK(in[count] == -7, "written behind the buffer");
        free(in);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Small messages, all unexpected, arrive whole and in order behind an awaited one. */
static void many_small(int count) {
    if (rank == 0) {
        for (int i = 0; i < count; ++i) {
            const int words[2] = {i, ~i};
            MPI_Send(words, 2, MPI_INT, 1, i % 7, MPI_COMM_WORLD);
        }
        MPI_Send(&count, 1, MPI_INT, 1, 100, MPI_COMM_WORLD);
    } else if (rank == 1) {
        int sent = 0;
        MPI_Recv(&sent, 1, MPI_INT, 0, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(sent == count, "%d", sent);
        /* The second of each pair first: the one in front of it must not be taken. */
        for (int n = 0; n < count; ++n) {
            const int i = (n ^ 1) < count ? n ^ 1 : n;
            int words[2] = {-1, -1};
            MPI_Recv(words, 2, MPI_INT, 0, i % 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(words[0] == i && words[1] == ~i, "%d is not number %d", words[0], i);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static long resident_mebibytes(void) {
    long kibibytes = 0;
    char line[256];
    FILE* file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kibibytes) == 1) break;
    if (file != NULL) fclose(file);
    return kibibytes / 1024;
}

/* 172 MiB in messages of 60,000 bytes, all unexpected; some are probed. With ULC_TEST_MEBIBYTES
 * they take less memory than that at the receiver. */
static void many_middle(void) {
    enum { kMessages = 3000, kBytes = 60000 };
    const char* most = getenv("ULC_TEST_MEBIBYTES");
    int word = 0;
    if (rank == 0) {
        char* out = malloc((size_t)kMessages * kBytes);
        MPI_Request* requests = malloc((kMessages + 1) * sizeof *requests);
        for (int i = 0; i < kMessages; ++i) {
            memset(out + (size_t)i * kBytes, i % 251, kBytes);
            MPI_Isend(out + (size_t)i * kBytes, kBytes, MPI_CHAR, 1, i % 5, MPI_COMM_WORLD,
                      &requests[i]);
        }
        MPI_Isend(&word, 1, MPI_INT, 1, 77, MPI_COMM_WORLD, &requests[kMessages]);
        MPI_Waitall(kMessages + 1, requests, MPI_STATUSES_IGNORE);
        free(requests);
        free(out);
    } else if (rank == 1) {
        const long before = resident_mebibytes();
        char* in = malloc(kBytes);
        MPI_Recv(&word, 1, MPI_INT, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const long taken = resident_mebibytes() - before;
        if (most != NULL) CHECK(taken < atol(most), "%ld MiB of unexpected messages", taken);
        for (int i = 0; i < kMessages; ++i) {
            if (i % 3 == 0) {
                int count = 0;
                MPI_Status status;
                MPI_Probe(0, i % 5, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_CHAR, &count);
                CHECK(count == kBytes, "%d bytes", count);
            }
            MPI_Recv(in, kBytes, MPI_CHAR, 0, i % 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int at = 0; at < kBytes; at += 977)
                CHECK((unsigned char)in[at] == i % 251, "byte %d of message %d", at, i);
        }
        free(in);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Wildcards see their communicator only, and messages of one source in order. */
static void wildcards(void) {
    enum { kComms = 3, kEach = 40 };
    MPI_Comm comms[kComms];
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank == 0 ? 0 : size - rank, &comms[2]); /* others reversed */
    if (rank != 0) {
        for (int i = 0; i < kEach; ++i)
            for (int c = 0; c < kComms; ++c) {
                const int value = c * 1000000 + rank * 1000 + i;
                MPI_Send(&value, 1, MPI_INT, 0, i % 5, comms[c]);
            }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        for (int c = kComms - 1; c >= 0; --c) {
            int next_tag3 = 3;
            int value = -1;
            MPI_Status status;
            /* By tag from any source, first source taken as it comes; then by source, any tag. */
            int* taken = calloc((size_t)size * kEach, sizeof *taken);
            for (int i = 0; i < (size - 1) * (kEach / 5); ++i) {
                MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, comms[c], &status);
                const int from = value % 1000000 / 1000;
                const int number = value % 1000;
                CHECK(value / 1000000 == c && number % 5 == 3, "%d on %d", value, c);
                CHECK(status.MPI_TAG == 3, "tag %d", status.MPI_TAG);
                if (c != 2) CHECK(status.MPI_SOURCE == from, "from %d", status.MPI_SOURCE);
                if (c == 2) CHECK(status.MPI_SOURCE == size - from, "from %d", status.MPI_SOURCE);
                if (number < 0 || number >= kEach || from <= 0 || from >= size) continue;
                CHECK(number == 3 || taken[from * kEach + number - 5], "%d early", value);
                taken[from * kEach + number] = 1;
                next_tag3 += 5;
            }
            CHECK(next_tag3 == 3 + 5 * (size - 1) * (kEach / 5), "%d", next_tag3);
            for (int source = 1; source < size; ++source) {
                const int from = c == 2 ? size - source : source;
                for (int i = 0; i < kEach; ++i) {
                    if (i % 5 == 3) continue;
                    MPI_Recv(&value, 1, MPI_INT, source, MPI_ANY_TAG, comms[c], &status);
                    CHECK(value == c * 1000000 + from * 1000 + i, "%d, not number %d of %d", value,
                          i, from);
                    CHECK(status.MPI_TAG == i % 5, "tag %d", status.MPI_TAG);
                }
            }
            free(taken);
        }
        int flag = 1;
        for (int c = 0; c < kComms; ++c) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &flag, MPI_STATUS_IGNORE);
            CHECK(!flag, "something is left on %d", c);
        }
    }
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[2]);
}

/* A probe shows a long synchronous send and does not complete it; a receive does. */
static void long_synchronous(void) {
    enum { kWords = 400000 };
    int* words = ints(kWords);
    int go = 0;
    if (rank == 0) {
        MPI_Request request;
        int done = 0;
        for (int i = 0; i < kWords; ++i)
            words[i] = i ^ 0x55;
        MPI_Issend(words, kWords, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
        MPI_Recv(&go, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* it has probed */
        for (int i = 0; i < 1000 && !done; ++i)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        CHECK(!done, "a probe completed the send");
        MPI_Send(&go, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
        if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Ssend(words, kWords, MPI_INT, 1, 6, MPI_COMM_WORLD);
    } else if (rank == 1) {
        for (int tag = 3; tag <= 6; tag += 3) {
            int count = 0;
            MPI_Status status;
            MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            CHECK(count == kWords && status.MPI_SOURCE == 0, "%d words", count);
            if (tag == 3) {
                MPI_Send(&go, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
                MPI_Recv(&go, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            for (int i = 0; i < kWords; ++i)
                words[i] = 0;
            MPI_Recv(words, kWords, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            int wrong = 0;
            for (int i = 0; i < kWords; ++i)
                wrong += words[i] != (i ^ 0x55);
            CHECK(wrong == 0, "%d words differ", wrong);
        }
    }
    free(words);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    large_before_awaited(argc > 1 ? (size_t)atol(argv[1]) : 32);
    many_small(argc > 2 ? atoi(argv[2]) : 100000);
    many_middle();
    wildcards();
    long_synchronous();
    return finish();
}
