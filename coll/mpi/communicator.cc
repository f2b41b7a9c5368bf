// SPDX-License-Identifier: BSD-3-Clause
// Communicators: a group for each, made at its first collective by members that agree.
//
//   new ──first collective──▶ job formed here? ──agree──▶ make the group ──agree──▶ in use
//                                │ no, at any member          │ no, at any member
//                                └─────────▶ the MPI's collectives, at every member
//
// Threads make groups over the same ranks in any order. The MPI's number of the communicator keys
// them: all members have the same one, and it is unique among the communicators of these ranks that
// exist. A later communicator may get the same number; each member then creates them in order.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>

#include "coll/mpi/operation.h"

namespace ulc::mpi {
namespace {

constexpr Nanos kGroupMax = 30 * kSecond;
constexpr unsigned kGroupsMax = 900;  ///< limit; a net has 1,024
/// Time for which a group that all members have left still acknowledges. An engine that has removed
/// a group acknowledges nothing in it, and the other members would repeat their last packets.
constexpr Nanos kRest = 500 * kMillisecond;
constexpr std::size_t kRestingMax = 400;

/// Groups here; guarded by the session's lock.
struct Resting {
    ulc_group group;
    Nanos until;
};
std::deque<Resting> resting;
unsigned groups_made = 0;  ///< the resting ones too

/// Frees the communicators that have rested long enough, and the oldest of too many. The lock is
/// held.
void sweep_resting() {
    const Nanos at = resting.empty() ? 0 : now();
    while (!resting.empty() && (resting.size() > kRestingMax || at >= resting.front().until)) {
        static_cast<void>(ulc_group_free(session().endpoint(), resting.front().group));
        resting.pop_front();
        --groups_made;
    }
}

/// Starts making the group; ULC_OK: in progress.
int start_group(ulc_mpi_comm& comm) {
    Session& here = session();
    int error = ULC_ERR_AGAIN;
    static_cast<void>(here.drive(kGroupMax, [&] {
        error = ulc_group_create_keyed(here.endpoint(), comm.ranks, comm.count, comm.key,
                                       &comm.request);
        comm.forming = error == ULC_OK;
        return error != ULC_ERR_AGAIN;
    }));
    return error;
}

bool make_group(ulc_mpi_comm& comm) {
    Session& here = session();
    if (start_group(comm) != ULC_OK) return false;
    ulc_status status{};
    int state = ULC_ERR_AGAIN;
    static_cast<void>(here.drive(kGroupMax, [&] {
        state = ulc_test(here.endpoint(), &comm.request, &status);
        return state != ULC_ERR_AGAIN;
    }));
    if (state == ULC_ERR_AGAIN) return false;  // some member never began: see `forming`
    comm.forming = false;
    if (state != ULC_OK || status.error != ULC_OK) return false;
    comm.group = status.group;
    comm.owns_group = true;
    const std::lock_guard<std::mutex> hold(here.lock());
    ++groups_made;
    return true;
}

/// The lock is held.
void drop_group(ulc_mpi_comm& comm) {
    if (!comm.owns_group) return;
    comm.owns_group = false;
    if (session().endpoint() == nullptr) return;
    resting.push_back({comm.group, now() + kRest});
    sweep_resting();
}

bool room_for_group() {
    const std::lock_guard<std::mutex> hold(session().lock());
    sweep_resting();
    return groups_made < kGroupsMax;
}

/// True if all members are on one node; every member finds the same.
bool on_one_node(const ulc_mpi_comm& comm) {
    const std::lock_guard<std::mutex> hold(session().lock());
    uint16_t per_node = 0;
    return ulc_coll_medium(session().endpoint(), comm.group, &per_node) != nullptr &&
           per_node == comm.count;
}

ulc_mpi_way decide(ulc_mpi_comm& comm, ulc_mpi_agree agree, void* context) {
    const bool formed = session().wait_formed();
    if (agree(context, formed ? 1 : 0) != 1) return ULC_MPI_NO_JOB;
    if (comm.whole) {
        const std::lock_guard<std::mutex> hold(session().lock());
        comm.group = ulc_world(session().endpoint());
    } else {
        if (agree(context, room_for_group() ? 1 : 0) != 1) return ULC_MPI_NO_GROUP;
        if (agree(context, make_group(comm) ? 1 : 0) != 1) {
            const std::lock_guard<std::mutex> hold(session().lock());
            drop_group(comm);
            return ULC_MPI_NO_GROUP;
        }
    }
    {
        const std::lock_guard<std::mutex> hold(session().lock());
        comm.self = ulc_group_index(session().endpoint(), comm.group);
    }
    if (on_one_node(comm) && !session().same_node()) {
        const std::lock_guard<std::mutex> hold(session().lock());
        drop_group(comm);
        return ULC_MPI_ONE_NODE;
    }
    return ULC_MPI_BY_ULC;
}

/// Starts a barrier behind the last operation of the group. A failure frees the group at once.
void begin_farewell(ulc_mpi_comm& comm) {
    static ulc_mpi_pending no_request = {[](ulc_mpi_pending*, int) {}, 0, nullptr};
    const ulc_group group = comm.group;
    static_cast<void>(perform(
        comm, nullptr, &no_request, NoData{},
        [=](NoData&, ulc_coll** op) {
            return ulc_barrier_start(session().endpoint(), group, nullptr, op);
        },
        [](NoData&) { return true; }));
}

}  // namespace

void forget(ulc_mpi_comm& comm) {
    drop_group(comm);
    if (comm.forming) return;  // libulc writes the request when the group is made
    delete[] comm.ranks;
    delete &comm;
}

void end(ulc_mpi_comm& comm) {
    // A member that frees a group forgets its messages there: all must have received them. The
    // program does not wait for that, since members may free communicators in any order.
    if (comm.owns_group && comm.orderly) begin_farewell(comm);
    const std::lock_guard<std::mutex> hold(session().lock());
    comm.freed = true;
    if (comm.pending == 0) forget(comm);
}

}  // namespace ulc::mpi

extern "C" {

ulc_mpi_comm* ulc_mpi_comm_new(const uint16_t* ranks, uint16_t count, int whole, uint64_t key) {
    auto comm = std::unique_ptr<ulc_mpi_comm>(new (std::nothrow) ulc_mpi_comm);
    if (!comm) return nullptr;
    comm->ranks = new (std::nothrow) uint16_t[count];
    if (comm->ranks == nullptr) return nullptr;
    std::memcpy(comm->ranks, ranks, count * sizeof *ranks);
    comm->count = count;
    comm->whole = whole != 0;
    comm->key = key;
    return comm.release();
}

void ulc_mpi_comm_free(ulc_mpi_comm* comm, int orderly) {
    if (comm == nullptr) return;
    {
        const std::lock_guard<std::mutex> hold(ulc::mpi::session().lock());
        comm->left = true;
        comm->orderly = orderly != 0;
        if (comm->persistent > 0) return;  // the last one ends it
    }
    ulc::mpi::end(*comm);
}

enum ulc_mpi_way ulc_mpi_comm_way_yet(const ulc_mpi_comm* comm) {
    return comm->decided ? comm->way : ULC_MPI_NOT_YET;
}

enum ulc_mpi_way ulc_mpi_comm_way(ulc_mpi_comm* comm, ulc_mpi_agree agree, void* context) {
    if (!comm->decided) {
        comm->way = ulc::mpi::decide(*comm, agree, context);
        comm->decided = true;
    }
    return comm->way;
}

}  // extern "C"
