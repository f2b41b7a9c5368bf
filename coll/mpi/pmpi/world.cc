// SPDX-License-Identifier: BSD-3-Clause
// Start, end and communicators. MPI_Init of each process opens an endpoint and gives all others its
// card; MPI_Finalize leaves the job. A communicator gets its counterpart at its first collective,
// as an attribute: that ends with the communicator, by whatever function the program frees it.
//
// Lock order: MPICH calls forget() with its own lock held, and the core calls MPICH with its lock
// held. So forget() only lists what is to be freed, and the next call that we catch frees it.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>
#include <vector>

#include "coll/mpi/pmpi/mpich.h"
#include "coll/mpi/pmpi/numbers.h"

namespace ulc::pmpi {

MPI_Request pending = MPI_REQUEST_NULL;

namespace {

constexpr int kRanksMax = 65534;

bool is_open = false;                ///< the account is printed at the end
std::atomic<bool> is_joined{false};  ///< every rank joined the job
int own_rank = 0;
int keyval = MPI_KEYVAL_INVALID;

std::mutex freed_lock;  ///< a leaf: nothing is called while it is held
std::vector<Communicator*> freed;
std::atomic<bool> any_freed{false};

Numbers numbers;

int forget(MPI_Comm, int, void* value, void*) {
    const std::lock_guard<std::mutex> hold(freed_lock);
    freed.push_back(static_cast<Communicator*>(value));
    any_freed = true;
    return MPI_SUCCESS;
}

/// Frees what MPICH has freed. orderly: all members have it still.
void reap(bool orderly) {
    if (!any_freed.load(std::memory_order_relaxed)) return;
    std::vector<Communicator*> mine;
    {
        const std::lock_guard<std::mutex> hold(freed_lock);
        mine.swap(freed);
        any_freed = false;
    }
    for (Communicator* one : mine) {
        // Where a member could not make the group, members may count those of its key differently.
        if (one->rank == 0 && one->ours != nullptr &&
            ulc_mpi_comm_way_yet(one->ours) != ULC_MPI_NO_GROUP)
            numbers.give_back(one->number);
        ulc_mpi_comm_free(one->ours, orderly ? 1 : 0);
        delete one;
    }
}

/// Joins the job if an engine answers at every rank. Collective over the world.
void begin() {
    int size = 0;
    const Mpich& mpi = mpich();
    mpi.Comm_rank(MPI_COMM_WORLD, &own_rank);
    mpi.Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || size > kRanksMax) return;
    ulc_mpi_card card;
    static_cast<void>(ulc_mpi_open(&hooks, &card));
    is_open = true;
    std::vector<ulc_mpi_card> cards(static_cast<std::size_t>(size));
    mpi.Allgather(&card, sizeof card, MPI_BYTE, cards.data(), sizeof card, MPI_BYTE,
                  MPI_COMM_WORLD);
    for (const ulc_mpi_card& one : cards)
        if (one.able == 0) {
            // Says why in the account; every rank has the same cards.
            static_cast<void>(ulc_mpi_join("", static_cast<std::uint32_t>(own_rank),
                                           static_cast<std::uint32_t>(size), cards.data()));
            return;
        }
    char job[64] = "mpich-";
    for (unsigned i = 0; i < 8; ++i)
        std::snprintf(job + 6 + 2 * i, 3, "%02x", unsigned{cards[0].nonce[i]});
    const int mine = ulc_mpi_join(job, static_cast<std::uint32_t>(own_rank),
                                  static_cast<std::uint32_t>(size), cards.data()) == 0;
    int all = 0;
    mpi.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all == 0) return;
    mpi.Grequest_start([](void*, MPI_Status*) { return MPI_SUCCESS; },
                       [](void*) { return MPI_SUCCESS; }, [](void*, int) { return MPI_SUCCESS; },
                       nullptr, &pending);
    mpi.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, nullptr);
    is_joined = true;
}

/// Leaves the job. In the barrier MPICH progresses the operations for which other ranks wait.
void end() {
    if (!is_open) return;
    is_open = false;
    if (is_joined) {
        reap(true);
        mpich().Barrier(MPI_COMM_WORLD);
        is_joined = false;
        mpich().Grequest_complete(pending);
        mpich().Wait(&pending, MPI_STATUS_IGNORE);
        mpich().Comm_free_keyval(&keyval);
    }
    ulc_mpi_close(static_cast<std::uint32_t>(own_rank));
}

/// Fills in the world's ranks of the members. False: not all are of this world.
bool world_ranks(MPI_Comm comm, int size, std::vector<std::uint16_t>& out) {
    const Mpich& mpi = mpich();
    std::vector<int> members(static_cast<std::size_t>(size));
    std::vector<int> ranks(members.size());
    for (int i = 0; i < size; ++i)
        members[static_cast<std::size_t>(i)] = i;
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    mpi.Comm_group(MPI_COMM_WORLD, &world);
    mpi.Comm_group(comm, &group);
    mpi.Group_translate_ranks(group, size, members.data(), world, ranks.data());
    mpi.Group_free(&group);
    mpi.Group_free(&world);
    for (const int rank : ranks) {
        if (rank == MPI_UNDEFINED) return false;
        out.push_back(static_cast<std::uint16_t>(rank));
    }
    return true;
}

/// Makes the counterpart of a communicator; collective over its members if these are of this world.
Communicator* adopt(MPI_Comm comm) {
    const Mpich& mpi = mpich();
    int is_inter = 0;
    std::vector<std::uint16_t> ranks;
    auto* one = new (std::nothrow) Communicator{};
    Communicator failed{};
    Communicator& filled = one != nullptr ? *one : failed;
    mpi.Comm_rank(comm, &filled.rank);
    mpi.Comm_size(comm, &filled.size);
    mpi.Comm_test_inter(comm, &is_inter);
    if (is_inter == 0 && filled.size > 1 && world_ranks(comm, filled.size, ranks)) {
        // The key is rank 0's: its number in the world and that of the communicator there.
        std::uint64_t mine[2] = {0, one == nullptr ? 1U : 0U};
        std::uint64_t all[2] = {0, 1};
        if (filled.rank == 0) {
            filled.number = numbers.take();
            mine[0] = std::uint64_t{ranks[0]} << 32 | filled.number;
        }
        mpi.Allreduce(mine, all, 2, MPI_UINT64_T, MPI_MAX, comm);
        if (all[1] == 0)
            filled.ours = ulc_mpi_comm_new(ranks.data(), static_cast<std::uint16_t>(filled.size),
                                           comm == MPI_COMM_WORLD, all[0]);
    }
    if (one != nullptr) mpi.Comm_set_attr(comm, keyval, one);
    return one;
}

Communicator* find(MPI_Comm comm) {
    if (!is_joined.load(std::memory_order_relaxed) || comm == MPI_COMM_NULL) return nullptr;
    reap(true);
    Communicator* one = nullptr;
    int found = 0;
    if (mpich().Comm_get_attr(comm, keyval, static_cast<void*>(&one), &found) != MPI_SUCCESS)
        return nullptr;
    return found != 0 ? one : adopt(comm);
}

/// The least of the members' values.
int agree(void* context, int mine) {
    int least = -1;
    const auto comm = *static_cast<MPI_Comm*>(context);
    const int status = mpich().Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, comm);
    return status == MPI_SUCCESS ? least : -1;
}

}  // namespace

Communicator* taken(MPI_Comm comm, ulc_mpi_op op, bool valid, const ulc_mpi_type* type) {
    Communicator* one = valid ? find(comm) : nullptr;
    if (one == nullptr || one->ours == nullptr) return nullptr;
    ulc_mpi_way way = ulc_mpi_comm_way(one->ours, agree, &comm);
    if (way == ULC_MPI_BY_ULC && type != nullptr && ulc_mpi_reducible(type) == 0)
        way = ULC_MPI_LARGE_ELEMENT;
    ulc_mpi_count(op, way);
    if (way == ULC_MPI_BY_ULC) return one;
    static_cast<void>(ulc_mpi_progress());  // of communicators that were freed
    return nullptr;
}

void count_left(ulc_mpi_op op) {
    if (!is_joined.load(std::memory_order_relaxed)) return;
    ulc_mpi_count(static_cast<ulc_mpi_op>(op + ULC_MPI_BLOCKING_OPS), ULC_MPI_NOT_CAUGHT);
}

bool has_rank(MPI_Comm comm, int root) {
    int size = 0;
    if (!is_joined.load(std::memory_order_relaxed) || comm == MPI_COMM_NULL) return false;
    return root >= 0 && mpich().Comm_size(comm, &size) == MPI_SUCCESS && root < size;
}

int ended(MPI_Comm comm, int error) {
    if (error == ULC_OK) return MPI_SUCCESS;
    const int code = error == ULC_ERR_NO_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
    mpich().Comm_call_errhandler(comm, code);
    return code;
}

}  // namespace ulc::pmpi

using namespace ulc::pmpi;  // NOLINT(google-build-using-namespace): the C entries of this namespace

extern "C" {

int MPI_Init(int* argc, char*** argv) {
    const int status = mpich().Init(argc, argv);
    if (status == MPI_SUCCESS) begin();
    return status;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const int status = mpich().Init_thread(argc, argv, required, provided);
    if (status == MPI_SUCCESS) begin();
    return status;
}

int MPI_Finalize() {
    end();
    const int status = mpich().Finalize();
    reap(false);
    return status;
}

int MPI_Comm_free(MPI_Comm* comm) {
    const int status = mpich().Comm_free(comm);
    if (is_joined) reap(true);
    return status;
}

// The module mpi_f08 of MPICH calls PMPI_Init, PMPI_Finalize and PMPI_Barrier. `error` is optional.
void mpi_init_f08_(int* error) {
    const int status = MPI_Init(nullptr, nullptr);
    if (error != nullptr) *error = status;
}

void mpi_init_thread_f08_(const int* required, int* provided, int* error) {
    const int status = MPI_Init_thread(nullptr, nullptr, *required, provided);
    if (error != nullptr) *error = status;
}

void mpi_finalize_f08_(int* error) {
    const int status = MPI_Finalize();
    if (error != nullptr) *error = status;
}

void mpi_barrier_f08_(const MPI_Comm* comm, int* error) {
    const int status = MPI_Barrier(*comm);
    if (error != nullptr) *error = status;
}

}  // extern "C"
