/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between two ranks: lengths, order, wildcards, synchronous sends, probes, cancelled
 * receives, truncation, messages to oneself.
 *   mpirun -n N messages [CANCELS] */
#include "check.h"

static int rank, size;

static char letter(size_t i, int seed) { return (char)(i * 31 + (size_t)seed * 7 + 3); }
static void fill(char* data, size_t n, int seed) {
    for (size_t i = 0; i < n; ++i)
        data[i] = letter(i, seed);
}
static int is_filled(const char* data, size_t n, int seed) {
    for (size_t i = 0; i < n; ++i)
        if (data[i] != letter(i, seed)) return 0;
    return 1;
}

/* Every rank sends to the next one, every length, expected and unexpected. */
static void lengths(void) {
    static const int all[] = {0, 1, 4, 28, 29, 40, 1000, 4096, 4097, 65536, 300000, 2000000};
    const int next = (rank + 1) % size;
    const int before = (rank + size - 1) % size;
    char* out = malloc(2000001);
    char* in = malloc(2000001);
    for (unsigned l = 0; l < sizeof all / sizeof all[0]; ++l) {
        for (int late = 0; late < 2; ++late) {
            const int n = all[l];
            MPI_Request requests[2];
            MPI_Status status[2];
            fill(out, (size_t)n, rank);
            memset(in, 'x', (size_t)n + 1);
            if (late) MPI_Isend(out, n, MPI_CHAR, next, (int)l, MPI_COMM_WORLD, &requests[0]);
            if (late && n < 100000) MPI_Barrier(MPI_COMM_WORLD);
            MPI_Irecv(in, n + 1, MPI_CHAR, before, (int)l, MPI_COMM_WORLD, &requests[1]);
            if (!late) MPI_Isend(out, n, MPI_CHAR, next, (int)l, MPI_COMM_WORLD, &requests[0]);
            MPI_Waitall(2, requests, status);
            int count = -1;
            MPI_Get_count(&status[1], MPI_CHAR, &count);
            CHECK(count == n, "%d bytes of %d", count, n);
            CHECK(is_filled(in, (size_t)n, before), "content of %d bytes", n);
            CHECK(in[n] == 'x', "the byte behind %d was written", n);
        }
    }
    free(out);
    free(in);
}

/* Rank 0 takes from any source and with any tag; order per source holds. */
static void wildcards(void) {
    enum { kEach = 50 };
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) {
        for (int i = 0; i < kEach; ++i) {
            const int value = rank * 1000 + i;
            MPI_Send(&value, 1, MPI_INT, 0, i % 3, MPI_COMM_WORLD);
        }
        return;
    }
    int* next = calloc((size_t)size, sizeof *next);
    for (int i = 0; i < (size - 1) * kEach; ++i) {
        int value = -1;
        MPI_Status status;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        const int from = status.MPI_SOURCE;
        CHECK(from > 0 && from < size, "source %d", from);
        if (from <= 0 || from >= size) continue;
        CHECK(value == from * 1000 + next[from], "%d from %d, not number %d", value, from,
              next[from]);
        CHECK(status.MPI_TAG == next[from] % 3, "tag %d", status.MPI_TAG);
        ++next[from];
    }
    free(next);
}

/* A synchronous send is not done before its receive is posted. */
static void synchronous(void) {
    if (rank > 1) return;
    char data[100];
    int go = 1;
    if (rank == 0) {
        MPI_Request request;
        int done = 0;
        fill(data, sizeof data, 5);
        MPI_Issend(data, sizeof data, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
        for (int i = 0; i < 2000; ++i)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        CHECK(!done, "done before the receive");
        MPI_Send(&go, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&go, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(data, sizeof data, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(is_filled(data, sizeof data, 5), "content");
    }
}

static void probes(void) {
    if (rank > 1) return;
    char data[5000];
    if (rank == 0) {
        fill(data, sizeof data, 1);
        MPI_Send(data, 10, MPI_CHAR, 1, 21, MPI_COMM_WORLD);
        MPI_Send(data, 5000, MPI_CHAR, 1, 22, MPI_COMM_WORLD);
        MPI_Send(data, 20, MPI_CHAR, 1, 22, MPI_COMM_WORLD);
        return;
    }
    int flag = 1;
    int count = -1;
    MPI_Status status;
    MPI_Message message;
    MPI_Iprobe(0, 23, MPI_COMM_WORLD, &flag, &status);
    CHECK(!flag, "nothing has tag 23");
    MPI_Probe(MPI_ANY_SOURCE, 22, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 22 && count == 5000, "source %d tag %d: %d",
          status.MPI_SOURCE, status.MPI_TAG, count);
    MPI_Mprobe(0, 22, MPI_COMM_WORLD, &message, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK(count == 5000, "%d bytes", count);
    /* The claimed message is out of the way. */
    MPI_Recv(data, 100, MPI_CHAR, 0, 22, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK(count == 20, "%d bytes", count);
    memset(data, 0, sizeof data);
    MPI_Mrecv(data, 5000, MPI_CHAR, &message, &status);
    CHECK(is_filled(data, 5000, 1), "content of the claimed message");
    MPI_Recv(data, 100, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_TAG == 21, "tag %d", status.MPI_TAG);
}

static void cancelled(void) {
    int value = 0;
    int flag = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 31, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag, "not cancelled");
}

/* Each rank takes back a receive whose message is on its way: either that receive has the message,
 * or the next one does. */
static void cancelled_in_time_or_not(int rounds) {
    enum { kLong = 20000 };
    const int next = (rank + 1) % size;
    const int before = (rank + size - 1) % size;
    int* out = malloc(kLong * sizeof(int));
    int* in = malloc(kLong * sizeof(int));
    MPI_Barrier(MPI_COMM_WORLD); /* a rank that is behind takes messages of any tag */
    for (int i = 0; i < rounds; ++i) {
        const int n = i % 3 == 2 ? kLong : 1;
        MPI_Request requests[2];
        MPI_Status status;
        int flag = 0;
        int count = -1;
        out[0] = out[n - 1] = i;
        in[0] = in[n - 1] = -1;
        MPI_Irecv(in, n, MPI_INT, i % 2 == 0 ? before : MPI_ANY_SOURCE, 32, MPI_COMM_WORLD,
                  &requests[0]);
        MPI_Isend(out, n, MPI_INT, next, 32, MPI_COMM_WORLD, &requests[1]);
        for (int tests = i % 7; tests > 0; --tests)
            MPI_Iprobe(MPI_ANY_SOURCE, 33, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], &status);
        MPI_Test_cancelled(&status, &flag);
        if (flag) MPI_Recv(in, n, MPI_INT, before, 32, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(count == n, "%d elements of %d, cancelled %d", count, n, flag);
        CHECK(in[0] == i && in[n - 1] == i, "%d and %d, not %d", in[0], in[n - 1], i);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    free(out);
    free(in);
}

static void truncated(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 1) return;
    char data[1000];
    fill(data, sizeof data, 2);
    if (rank == 0) {
        MPI_Send(data, 1000, MPI_CHAR, 1, 41, MPI_COMM_WORLD);
        MPI_Send(data, 50, MPI_CHAR, 1, 41, MPI_COMM_WORLD);
        return;
    }
    char in[101];
    in[100] = 'x';
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int error = MPI_Recv(in, 100, MPI_CHAR, 0, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int class = 0;
    MPI_Error_class(error, &class);
    CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
    CHECK(in[100] == 'x', "written behind the buffer");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Recv(in, 100, MPI_CHAR, 0, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(is_filled(in, 50, 2), "the message after it");
}

static void to_self(void) {
    static char out[70000], in[70000];
    MPI_Request request;
    fill(out, sizeof out, rank);
    MPI_Isend(out, sizeof out, MPI_CHAR, rank, 51, MPI_COMM_WORLD, &request);
    MPI_Recv(in, sizeof in, MPI_CHAR, rank, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(is_filled(in, sizeof in, rank), "content");
}

/* Many receives wait, and messages come for the last ones first. */
static void many(void) {
    enum { kMany = 3000 };
    static int values[kMany];
    static MPI_Request requests[kMany];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        for (int i = 0; i < kMany; ++i)
            MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = kMany - 1; i >= 0; --i)
            MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Waitall(kMany, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < kMany; ++i)
            CHECK(values[i] == i, "receive %d got %d", i, values[i]);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    lengths();
    wildcards();
    synchronous();
    probes();
    cancelled();
    cancelled_in_time_or_not(argc > 1 ? atoi(argv[1]) : 300);
    truncated();
    to_self();
    many();
    return finish();
}
