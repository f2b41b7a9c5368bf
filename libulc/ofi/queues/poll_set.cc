// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/queues/poll_set.h"

#include <mutex>
#include <new>
#include <vector>

#include "ofi/domain.h"
#include "ofi/fabric.h"
#include "ofi/not_there.h"
#include "ofi/queues/completions.h"
#include "ofi/queues/counter.h"

namespace ulc::ofi {
namespace {

constexpr NotThere kNotThere;

/// A completion queue, or a counter and the count at the last look.
struct Member {
    fid* object;
    std::uint64_t seen;
};

class PollSet : public fid_poll {
public:
    explicit PollSet(Domain& in) noexcept : fid_poll{}, domain(in) {}
    Domain& domain;
    std::mutex mutex;  ///< is taken before a domain's
    std::vector<Member> members;
};

PollSet& set_of(fid_poll* set) noexcept { return *static_cast<PollSet*>(set); }

std::uint64_t total_of(const Counter& counter) noexcept { return counter.count + counter.errors; }

/// Moves the endpoints of a member. True if it has something to report.
bool look_at(Member& member) noexcept {
    if (member.object->fclass == FI_CLASS_CQ) {
        auto& queue = object_of<CompletionQueue, fid_cq>(member.object);
        const Guard hold(queue.domain.lock);
        if (!queue.has_entries()) queue.progress();
        return queue.has_entries();
    }
    auto& counter = object_of<Counter, fid_cntr>(member.object);
    counter.progress();
    const std::uint64_t count = total_of(counter);
    const bool moved = count != member.seen;
    member.seen = count;
    return moved;
}

int poll(fid_poll* set, void** contexts, int count) noexcept {
    PollSet& in = set_of(set);
    const std::lock_guard hold(in.mutex);
    int found = 0;
    for (Member& member : in.members) {
        if (found == count) break;
        if (look_at(member)) contexts[found++] = member.object->context;
    }
    return found;
}

int add(fid_poll* set, fid* object, std::uint64_t flags) noexcept try {
    if (flags != 0) return -FI_EBADFLAGS;
    if (object->fclass != FI_CLASS_CQ && object->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
    PollSet& into = set_of(set);
    const bool counts = object->fclass == FI_CLASS_CNTR;
    const std::uint64_t seen = counts ? total_of(object_of<Counter, fid_cntr>(object)) : 0;
    const std::lock_guard hold(into.mutex);
    into.members.push_back({object, seen});
    return 0;
} catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
}

int remove(fid_poll* set, fid* object, std::uint64_t flags) noexcept {
    if (flags != 0) return -FI_EBADFLAGS;
    PollSet& from = set_of(set);
    const std::lock_guard hold(from.mutex);
    const auto is_it = [object](const Member& member) { return member.object == object; };
    return std::erase_if(from.members, is_it) > 0 ? 0 : -FI_EINVAL;
}

int close_set(fid* handle) noexcept {
    auto& set = object_of<PollSet, fid_poll>(handle);
    --set.domain.users;
    delete &set;
    return 0;
}

fi_ops fid_ops = {sizeof(fi_ops), close_set, kNotThere, kNotThere, kNotThere, kNotThere, kNotThere};
fi_ops_poll poll_ops = {sizeof(fi_ops_poll), poll, add, remove};

}  // namespace

int open_poll_set(fid_domain* domain, fi_poll_attr* attr, fid_poll** out) noexcept {
    if (attr != nullptr && attr->flags != 0) return -FI_ENOSYS;
    auto& in = *static_cast<Domain*>(domain);
    auto* set = new (std::nothrow) PollSet(in);
    if (set == nullptr) return -FI_ENOMEM;
    set->fid = {FI_CLASS_POLL, nullptr, &fid_ops};
    set->ops = &poll_ops;
    ++in.users;
    *out = set;
    return 0;
}

}  // namespace ulc::ofi
