// SPDX-License-Identifier: BSD-3-Clause
// Messages of a GAMMA process: joining, sending, delivery to ports, waits.
#include "ports/process.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/fnv.h"
#include "base/units.h"

namespace ulc::ports {
namespace {

constexpr Nanos kJoinMax = 60 * kSecond;
constexpr Nanos kLeaveMax = 15 * kSecond;
constexpr PortNumber kEnterPort = 255;    ///< barrier message to the next in the chain
constexpr PortNumber kReleasePort = 254;  ///< barrier message to all
constexpr int kChains = 2;
constexpr int kParPids = 255;
constexpr int kSaid = -1;  ///< no error of ulc.h: a sentence was printed

const char* environment(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
    return value == nullptr ? "" : value;
}

/// Equal at all members of a job, and different from job to job as a rule.
int par_pid_of(const char* job) {
    std::uint64_t hash = kFnvBasis;
    for (const char* at = job; *at != '\0'; ++at)
        hash = fnv1a(hash, static_cast<unsigned char>(*at));
    return 1 + static_cast<int>(hash % kParPids);
}

/// ULC_PAR_PID, else made of the job's name.
int own_par_pid(const char* job) {
    const int given = std::atoi(environment("ULC_PAR_PID"));
    return given >= 1 && given <= kParPids ? given : par_pid_of(job);
}

bool complain(const char* text) {
    std::fprintf(stderr, "gamma_init: %s\n", text);
    return false;
}

}  // namespace

// ---------------------------------------------------------------- joining and leaving

/// Joins the job of the environment. Without one it starts the other instances, and joins theirs.
int Process::join(int num_nodes, int argc, char** argv) {
    const int error = ulc_join_wait(ep_, nullptr, ULC_RANK_ANY, 0, kJoinMax);
    if (error != ULC_ERR_INVALID || *environment("ULC_JOB") != '\0') return error;
    const std::string file = Others::host_file();
    if (file.empty()) return error;
    if (!others_.start(file, num_nodes, argc, argv)) return kSaid;
    static_cast<void>(ulc_set_profile(ep_, environment("ULC_PROFILE")));
    return join_with_others();
}

int Process::join_with_others() {
    const auto size = static_cast<std::uint16_t>(others_.instances());
    int state = ulc_join(ep_, others_.job().c_str(), 0, size, others_.nonce());
    if (state != ULC_OK) return state;
    for (Nanos left = kJoinMax; left > 0; left -= kLookEvery) {
        static_cast<void>(ulc_wait(ep_, kLookEvery));
        state = ulc_job_state(ep_);
        if (state != ULC_ERR_AGAIN) return state;
        if (size > 1 && others_.have_ended()) {
            complain("the other instances could not all be started; see what `ulc run` says");
            return kSaid;
        }
    }
    return ULC_ERR_TIMEOUT;
}

bool Process::init(int num_nodes, int argc, char** argv) {
    if (ep_ != nullptr) return complain("it was called before");
    int error = ulc_open(nullptr, &ep_);
    if (error == ULC_OK) error = join(num_nodes, argc, argv);
    if (error != ULC_OK) {
        if (error != kSaid)
            std::fprintf(
                stderr,
                "gamma_init: %s: %s; start the program with: ulc run -n N PROGRAM, or name "
                "a file with a host a line in ULC_HOSTS\n",
                ulc_error_text(error), ulc_last_error_text());
        others_.finish();
        ulc_close(ep_);
        ep_ = nullptr;
        return false;
    }
    thread_ = pthread_self();
    node_ = ulc_rank(ep_);
    const int instances = ulc_size(ep_);
    const bool has_started = others_.instances() > 0;
    nodes_ = has_started || num_nodes <= 0 ? instances : std::min(num_nodes, instances);
    par_pid_ = own_par_pid(has_started ? others_.job().c_str() : environment("ULC_JOB"));
    acknowledges_ = std::strstr(environment("ULC_PROFILE"), "detect") == nullptr;
    const bool fits = belongs(instances);
    own_.ep = ep_;
    own_.failed = &failed_;
    ulc_set_error_handler(ep_, Way::on_fault, &own_);
    const bool has_groups = fits && groups_.open(par_pid_, node_, nodes_);
    error = set_upcall(ep_);
    endpoints_.add(ep_);
    if (error == ULC_OK && groups_.endpoint() != nullptr) {
        error = set_upcall(groups_.endpoint());
        endpoints_.add(groups_.endpoint());
    }
    if (error != ULC_OK)
        std::fprintf(stderr, "gamma_init: no upcalls: %s: %s\n", ulc_error_text(error),
                     ulc_last_error_text());
    bool begun = has_groups && error == ULC_OK;
    if (begun) {
        const Call call(*this);
        begun = make_group(instances) && wait_for_all();
        if (!begun) complain("a member of the group left before all had come");
    }
    if (!begun) static_cast<void>(exit());
    return begun;
}

bool Process::belongs(int instances) const {
    if (nodes_ > GAMMA_NODES_MAX) {
        std::fprintf(stderr, "gamma_init: the job has %d instances, and a group at most %d\n",
                     instances, GAMMA_NODES_MAX);
    } else if (node_ >= nodes_) {
        std::fprintf(stderr,
                     "gamma_init: instance %d is not in the group of %d; start as many with: ulc "
                     "run -n %d\n",
                     node_, nodes_, nodes_);
    }
    return node_ < nodes_ && nodes_ <= GAMMA_NODES_MAX;
}

bool Process::make_group(int instances) {
    if (nodes_ == instances || nodes_ == 1) return true;
    std::vector<std::uint16_t> ranks(static_cast<std::size_t>(nodes_));
    std::iota(ranks.begin(), ranks.end(), std::uint16_t{0});
    ulc_request made;
    ulc_status status;
    const auto count = static_cast<std::uint16_t>(nodes_);
    if (ulc_group_create(ep_, ranks.data(), count, &made) != ULC_OK) return false;
    if (complete(ep_, made, &status) != ULC_OK) return false;
    own_.all = status.group;
    return true;
}

int Process::set_upcall(ulc_endpoint* ep) {
    const auto upcall = [](ulc_endpoint* from, void* context) {
        static_cast<Process*>(context)->on_upcall(from);
    };
    return ulc_upcall(ep, upcall, this);
}

// Other threads do not call any more.
bool Process::exit() {
    endpoints_.promise();
    end_sessions();
    if (groups_.endpoint() != nullptr) {
        static_cast<void>(ulc_upcall(groups_.endpoint(), nullptr, nullptr));
        groups_.close();
    }
    const bool left = ulc_leave_wait(ep_, kLeaveMax) == ULC_OK;
    if (left) others_.set_complete();
    static_cast<void>(ulc_upcall(ep_, nullptr, nullptr));
    ulc_close(ep_);
    ep_ = nullptr;
    endpoints_.clear();
    arrival_.under_way = false;
    ports_.unbind_all();
    own_ = {};
    expected_ = {};
    entered_ = released_ = 0;
    is_shared_ = is_over_ = false;
    return left;
}

// ---------------------------------------------------------------- ports

void Process::bind(PortNumber number, const Port& port) {
    const Call call(*this);
    settle_arrival(number);
    ports_.bind(number, port);
}

bool Process::attach(PortNumber number, void* buffer) {
    const Call call(*this);
    settle_arrival(number);
    return ports_.attach(number, buffer);
}

// Nothing is written into a buffer that its port has released. In an atomic function the handler of
// that message does not run.
void Process::settle_arrival(PortNumber number) {
    while (arrival_.under_way && arrival_.port == number) {
        if (serial_ == 0) {
            if (!finish_arrival()) static_cast<void>(pause(changes_.load()));
            continue;
        }
        if (ulc_test(arrival_.from, &arrival_.request, nullptr) == ULC_OK) {
            arrival_.under_way = false;
        } else {
            static_cast<void>(wait_a_while(kLookEvery));
        }
    }
}

void Process::run_atomically(void (*function)()) {
    const Call call(*this);
    ++serial_;
    function();
    --serial_;
}

// ---------------------------------------------------------------- delivery

// In calls of the program, and in upcalls, which come only between them.
void Process::deliver() {
    ulc_endpoint* const groups = groups_.endpoint();
    const bool is_guests_thread = groups != nullptr && is_first();
    if (groups != nullptr) groups_.greet();
    if (is_guests_thread) admit_guests();
    do {
        if (arrival_.under_way && !finish_arrival()) return;
        if (groups != nullptr) groups_.take_failures(failed_);
        raise_failures();
    } while (deliver_next(ep_) ||
             (groups != nullptr && (deliver_next(groups) || deliver_of_guests())));
    if (groups != nullptr) groups_.forget_guests();
    if (is_guests_thread) {
        end_left_sessions();
        admit_guests();
    }
}

/// False: no message waits.
bool Process::deliver_next(ulc_endpoint* from) {
    ulc_message* message = nullptr;
    ulc_status status;
    if (ulc_claim(from, ULC_RANK_ANY, 0, 0, &message, &status) != ULC_OK) return false;
    begin(from, message, status);
    return true;
}

/// Tells whether messages of this sender before this one are missing.
bool Process::shows_gap(const ulc_endpoint* from, const ulc_status& status) noexcept {
    if (from == ep_) return expected_[status.source].shows_gap(status);
    if (from == groups_.endpoint()) return groups_.shows_gap(status.tag, status.source);
    Sessions::Guest* const guest = sessions_.guest_of(from);
    return guest != nullptr && guest->expected.shows_gap(status);
}

void Process::begin(ulc_endpoint* from, ulc_message* message, const ulc_status& status) {
    const auto number = static_cast<PortNumber>(status.tag);
    if (from == groups_.endpoint() && take_word(message, status)) return;
    const bool gap = shows_gap(from, status);
    if (number >= GAMMA_RESERVED_FROM) {
        static_cast<void>(ulc_discard(from, message));
        if (from == ep_) on_internal(number, status.source);
        return;
    }
    if (gap) raise(number, Fault::kFrameLost);
    if (!ports_[number].receives) {
        static_cast<void>(ulc_discard(from, message));
        return;
    }
    arrival_.from = from;
    arrival_.port = number;
    arrival_.place = ports_.place(number, status.length);
    const ulc_piece piece{arrival_.place.at, arrival_.place.copied};
    if (piece.length == 0) {
        static_cast<void>(ulc_discard(from, message));
        return end_arrival({});
    }
    arrival_.under_way = ulc_receive_claimed(from, message, &piece, 1, &arrival_.request) == ULC_OK;
}

/// False: a part of the message has not come yet.
bool Process::finish_arrival() {
    ulc_status status;
    if (ulc_test(arrival_.from, &arrival_.request, &status) != ULC_OK) return false;
    arrival_.under_way = false;
    end_arrival(status);
    return true;
}

void Process::end_arrival(const ulc_status& status) {
    const bool whole = status.error == ULC_OK || status.error == ULC_ERR_TRUNCATED;
    if (whole) ports_.advance(arrival_.port, arrival_.place);
    const Fault fault = whole ? arrival_.place.fault : Fault::kFrameLost;
    if (fault != Fault::kNone) return raise(arrival_.port, fault);
    run(arrival_.port, ports_[arrival_.port].on_message, Fault::kNone);
}

void Process::raise_failures() {
    for (unsigned number = 0; failed_.any() && number < failed_.size(); ++number) {
        if (!failed_.test(number)) continue;
        failed_.reset(number);
        raise(static_cast<PortNumber>(number), Fault::kSendFailure);
    }
}

void Process::raise(PortNumber number, Fault fault) { run(number, ports_[number].on_error, fault); }

void Process::run(PortNumber number, gamma_handler handler, Fault fault) {
    if (handler == nullptr) return;
    ++serial_;
    gamma_active_port = number;
    gamma_errno = static_cast<unsigned char>(fault);
    ulc_show_handler(ep_, ULC_HANDLER_PORT, number);
    handler();
    ulc_show_handler(ep_, ULC_HANDLER_NONE, 0);
    --serial_;
}

// ---------------------------------------------------------------- sending

int Process::submit(Way& way, const Port& port, PortNumber number, const void* data,
                    std::size_t length, ulc_request* request, unsigned flags) {
    const ulc_piece piece{const_cast<void*>(data), length};
    std::uint64_t& sent = way.sent[port.node];
    const auto rank = static_cast<std::uint16_t>(way.first_rank + port.node);
    for (;;) {
        const std::uint64_t tag = sent << kPortBits | port.to;
        const int error = port.node == BROADCAST
                              ? ulc_multicastv(way.ep, way.all != 0 ? way.all : ulc_world(way.ep),
                                               ULC_SUBSET_ALL, tag, &piece, 1, flags, request)
                              : ulc_sendv(way.ep, rank, tag, &piece, 1, flags, request);
        if (error == ULC_OK) {
            ++sent;
            SentPorts* const log = way.sent_to.log_of(port.node);
            if (log != nullptr) log->add(number);
        }
        if (error != ULC_ERR_AGAIN) return error;
        const int waited = pause(changes_.load());
        if (!may_go_on(waited)) return waited;
        way.through = number;
    }
}

/// Takes messages while a send waits, or two processes that send to each other would both wait.
/// False: the engine has ended.
bool Process::may_go_on(int waited) {
    if (waited != ULC_OK && waited != ULC_ERR_TIMEOUT && waited != ULC_ERR_LIMIT) return false;
    if (serial_ == 0) deliver();
    return true;
}

int Process::complete(ulc_endpoint* ep, ulc_request& request, ulc_status* status) {
    ulc_status own;
    if (status == nullptr) status = &own;
    for (;;) {
        const std::uint32_t seen = changes_.load();
        if (ulc_test(ep, &request, status) == ULC_OK) return status->error;
        static_cast<void>(pause(seen));
        if (serial_ == 0) deliver();
    }
}

bool Process::send(PortNumber number, const void* data, std::size_t length, SendMode mode) {
    const Call call(*this);
    const Port port = ports_[number];  // a handler may bind it meanwhile
    if (!port.sends) return false;
    if (port.group != 0) {
        Way* const way = sessions_.way_to(port.group, port.node);
        if (way == nullptr) return send_to_group(port, number, data, length, mode);
        ++way->senders;
        const bool sent = send_by(*way, port, number, data, length, mode);
        --way->senders;
        return sent;
    }
    if (port.node == BROADCAST && nodes_ == 1) return true;
    // The caller's own handlers would have to run for a message to itself to be delivered.
    if (port.node != BROADCAST && port.node == node_) mode = SendMode::kFast;
    return send_by(own_, port, number, data, length, mode);
}

bool Process::send_by(Way& way, const Port& port, PortNumber number, const void* data,
                      std::size_t length, SendMode mode) {
    if (serial_ > 0) mode = SendMode::kFast;
    if (!acknowledges_ && mode == SendMode::kDelivered) mode = SendMode::kTaken;
    way.through = number;
    ulc_request request;
    const auto flags = mode == SendMode::kDelivered ? unsigned{ULC_SEND_DELIVERED} : 0U;
    const bool waits = mode != SendMode::kFast;
    int error = submit(way, port, number, data, length, waits ? &request : nullptr, flags);
    if (error != ULC_OK) {
        failed_.set(number);
        return false;
    }
    if (!waits) return true;
    SentPorts* const log = way.sent_to.log_of(port.node);
    const std::uint64_t mine = log == nullptr ? 0 : log->last();
    error = complete(way.ep, request);
    // A unicast that fails is also reported among the last ones to its node (Way::on_fault).
    if (error != ULC_OK && (log == nullptr || log->forget(mine))) failed_.set(number);
    return error == ULC_OK;
}

// ---------------------------------------------------------------- waits

bool Process::is_broken(Needs needs) const noexcept {
    for (int node = 0; node < nodes_; ++node) {
        if (node == node_) continue;
        const int state = ulc_peer_state(ep_, static_cast<std::uint16_t>(node));
        const bool may_leave =
            needs == Needs::kNobody || (needs == Needs::kMaster && node != kMasterNode);
        if (state == ULC_ERR_PEER_DIED || (state != ULC_OK && !may_leave)) return true;
    }
    return false;
}

/// False: the engine has ended; or nothing comes, and a member has died, or has left that is
/// needed.
template <typename Condition>
bool Process::wait_until(Condition condition, Needs needs) {
    for (;;) {
        const std::uint32_t seen = changes_.load();
        deliver();
        if (condition()) return true;
        const int error = pause(seen);
        if (error == ULC_OK || error == ULC_ERR_LIMIT) continue;
        if (error != ULC_ERR_TIMEOUT || is_broken(needs)) return false;
    }
}

int Process::wait(std::uint8_t semaphore, unsigned long wanted) {
    const Call call(*this);
    std::atomic<unsigned long>& signals = signals_[semaphore];
    const auto take = [&] {
        if (signals.load() < wanted) return false;
        signals -= wanted;  // only this thread has the endpoint, and others only add
        return true;
    };
    const bool come = wait_until(take, Needs::kNobody);
    const auto errors = static_cast<int>(errors_[semaphore].exchange(0));
    return come ? -errors : -errors - 1;
}

// ---------------------------------------------------------------- barriers

void Process::on_internal(PortNumber number, std::uint16_t /*source*/) {
    if (number == kEnterPort) ++entered_;
    if (number == kReleasePort) ++released_;
}

bool Process::tell(std::uint8_t node, PortNumber number) {
    Port port;
    port.node = node;
    port.to = number;
    return submit(own_, port, number, nullptr, 0, nullptr, 0) == ULC_OK;
}

/// The concurrent barrier [GAMMA §5.2.1], of which gamma_init() consists.
bool Process::wait_for_all() {
    const auto slaves = static_cast<unsigned>(nodes_ - 1);
    if (node_ != kMasterNode) {
        if (!tell(kMasterNode, kEnterPort)) return false;
        if (!wait_until([&] { return released_ > 0; }, Needs::kMaster)) return false;
        --released_;
        return true;
    }
    if (!wait_until([&] { return entered_ >= slaves; }, Needs::kAll)) return false;
    entered_ -= slaves;
    return slaves == 0 || tell(BROADCAST, kReleasePort);
}

// The chains are 1 … half and half + 1 … N − 1. In each the last begins, and the first tells the
// master, which releases all.
bool Process::synchronise() {
    const Call call(*this);
    const int slaves = nodes_ - 1;
    if (slaves <= kChains) return wait_for_all();
    const int half = (slaves + 1) / kChains;
    if (node_ == kMasterNode) {
        if (!wait_until([&] { return entered_ >= kChains; }, Needs::kAll)) return false;
        entered_ -= kChains;
        return tell(BROADCAST, kReleasePort);
    }
    const bool first = node_ == 1 || node_ == half + 1;
    const bool last = node_ == half || node_ == slaves;
    if (!last) {
        if (!wait_until([&] { return entered_ > 0; }, Needs::kAll)) return false;
        --entered_;
    }
    if (!tell(static_cast<std::uint8_t>(first ? kMasterNode : node_ - 1), kEnterPort)) return false;
    if (!wait_until([&] { return released_ > 0; }, Needs::kMaster)) return false;
    --released_;
    return true;
}

}  // namespace ulc::ports
