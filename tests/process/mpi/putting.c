/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares MPI_Put of 8 bytes between two fences with a message of a ping-pong.
 *   mpirun -n 2 putting MOST        by the medians of their times, which it prints
 *   mpirun -n 2 putting MOST ULC    by the messages that the engine of rank 0 sends, as the command
 *                                   ULC counts them
 * MOST: how many times as much as a message of the ping-pong the put may take. */
#include "check.h"

enum { kRounds = 1000 };

static long memory[2];

static int compare(const void* left, const void* right) {
    const double a = *(const double*)left;
    const double b = *(const double*)right;
    return (a > b) - (a < b);
}

static double median(double* times) {
    qsort(times, kRounds, sizeof *times, compare);
    return times[kRounds / 2] * 1e6;
}

/* Messages that the engine of node 0 has sent. ULC_ENGINE has %n in place of a node's number. */
static long messages_sent(const char* ulc) {
    char command[4096];
    static char text[1 << 16];
    const char* engine = getenv("ULC_ENGINE");
    const char* number = engine == NULL ? NULL : strstr(engine, "%n");
    if (number == NULL) MPI_Abort(MPI_COMM_WORLD, 4);
    snprintf(command, sizeof command, "'%s' stat --json '%.*s0%s'", ulc, (int)(number - engine),
             engine, number + 2);
    FILE* out = popen(command, "r");
    text[out == NULL ? 0 : fread(text, 1, sizeof text - 1, out)] = '\0';
    if (out != NULL) pclose(out);
    const char* name = "\"messages_sent\":";
    const char* at = strstr(text, name);
    CHECK(at != NULL, "no messages_sent in: %s", text);
    return at == NULL ? 0 : atol(at + strlen(name));
}

/* A message and back. */
static void ping_pong(int rank, long value) {
    if (rank == 0) MPI_Send(&value, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_LONG, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&value, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
}

/* In turns to two places: the next put may arrive before this one is compared. */
static void put_and_fence(int rank, long value, MPI_Win window) {
    const int place = (int)(value % 2);
    if (rank == 0) MPI_Put(&value, 1, MPI_LONG, 1, place, 1, MPI_LONG, window);
    MPI_Win_fence(0, window);
    CHECK(rank == 0 || memory[place] == value, "%ld in round %ld", memory[place], value);
}

static void compare_times(int rank, MPI_Win window, double most) {
    static double messages[kRounds];
    static double puts[kRounds];
    for (long i = 0; i < kRounds; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        ping_pong(rank, i);
        messages[i] = (MPI_Wtime() - begin) / 2;
        MPI_Win_fence(0, window);
        begin = MPI_Wtime();
        put_and_fence(rank, i, window);
        puts[i] = MPI_Wtime() - begin;
    }
    const double message = median(messages);
    const double put = median(puts);
    if (rank != 0) return;
    fprintf(stderr, "MPI_Put of 8 B and a fence: %.2f us, a message: %.2f us, ratio %.2f\n", put,
            message, put / message);
    CHECK(put <= most * message, "%.2f us", put);
}

static void compare_counts(int rank, MPI_Win window, double most, const char* ulc) {
    long sent[3] = {0};
    MPI_Win_fence(0, window);
    for (int phase = 0; phase < 3; ++phase) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) sent[phase] = messages_sent(ulc);
        MPI_Barrier(MPI_COMM_WORLD);
        for (long i = 0; i < kRounds && phase < 2; ++i)
            phase == 0 ? ping_pong(rank, i) : put_and_fence(rank, i, window);
    }
    if (rank != 0) return;
    const double message = (double)(sent[1] - sent[0]) / kRounds;
    const double put = (double)(sent[2] - sent[1]) / kRounds;
    fprintf(stderr, "MPI_Put of 8 B and a fence: %.2f messages, a message: %.2f\n", put, message);
    /* The barriers of a phase are messages too. */
    CHECK(put <= most * message + 0.1, "%.2f messages", put);
}

int main(int argc, char** argv) {
    int rank;
    int size;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2 || argc > 3 || size != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Win_create(memory, sizeof memory, sizeof memory[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (argc == 2)
        compare_times(rank, window, atof(argv[1]));
    else
        compare_counts(rank, window, atof(argv[1]), argv[2]);
    MPI_Win_free(&window);
    return finish();
}
