// SPDX-License-Identifier: BSD-3-Clause
// The state of a whole engine (docs/design/UPGRADE.md). One function walks through the engine in
// both directions; objects that name each other are named by place, uid or handle:
//
//   limits   users   nets (jobs first)   endpoints by place   groups of nets   order   rounds
//
// Counts of what is charged are made again from what is read, so that the end of an engine that was
// read in part finds them right.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/state/containers.h"
#include "engine/core.h"
#include "engine/engine.h"
#include "wire/state/ids.h"

namespace ulc::engine {

namespace {

/// Stands for the region of a client that died. It is not touched.
void* const kNoRegion = reinterpret_cast<void*>(std::uintptr_t{abi::kPageOctets});

}  // namespace

template <typename Each>
void GroupTable::exchange(state::Archive& archive, Each group) {
    const std::size_t groups = archive.count(used_, limit_, "a net has too many groups");
    std::uint32_t place = 0;
    for (std::size_t n = 0; n < groups && archive.ok(); ++n, ++place) {
        while (archive.exporting() && slots_[place].handle == 0)
            ++place;
        archive.bounded(place, mask_, "a group has no place in its table");
        Slot& slot = slots_[place];
        if (archive.importing()) {
            if (!archive.require(slot.handle == 0, "two groups have one place")) return;
            slot.group = std::make_unique<LocalGroup>();
        }
        archive.values(*slot.group);
        slot.handle = slot.group->handle;
        if (!archive.require(slot.handle != 0, "a group has no handle")) {
            slot.group.reset();
            return;
        }
        if (archive.importing()) ++used_;
        group(*slot.group);
    }
    for (const Slot& slot : slots_)
        if (slot.handle != 0)
            archive.require(find(slot.handle) == slot.group.get(), "a group is not in its place");
}

namespace {

class Exchange {
public:
    Exchange(Core& core, state::Archive& archive, const Regions& regions)
        : core_(core), archive_(archive), regions_(regions) {}

    void run() {
        compare_limits();
        archive_.values(core_.accounts());
        for (const auto& net : core_.nets())
            archive_.values(*net);
        for (std::uint32_t index = 0; index < core_.table().places() && archive_.ok(); ++index)
            exchange_place(index);
        if (!archive_.ok()) return;
        for (const auto& net : core_.nets())
            exchange_groups(*net);
        exchange_active();
        archive_.values(core_);
        exchange_looks();
    }

private:
    void compare_limits() {
        const EngineConfig& config = core_.config();
        archive_.same(config.endpoints_max, "the greatest number of endpoints");
        archive_.same(config.groups_max, "the greatest number of groups");
        archive_.same(config.pending_sends, "the length of send queues");
        archive_.same(config.links_max, "the greatest number of links");
        archive_.same(config.jobs.jobs_max, "the greatest number of jobs");
        archive_.same(config.ether_type, "the Ethernet type");
        archive_.same(config.crc, "the checksum of frames");
        archive_.same(core_.nets().size(), "the number of ports");
        for (const auto& net : core_.nets()) {
            archive_.same(net->port().info.mtu, "the MTU of a port");
            archive_.same(net->port().info.multicast_filters, "the filter of a port");
            for (const std::uint8_t octet : net->port().info.mac.octets)
                archive_.same(octet, "the address of a port");
        }
    }

    // ---------------------------------------------------------------- endpoints

    void exchange_place(std::uint32_t index) {
        Endpoint* place = core_.table().at(index);
        bool there = place != nullptr;
        archive_.values(there);
        if (!there) return;
        std::uint32_t net = place ? place->net().index() : 0;
        std::uint32_t user = place ? user_of(place->user()) - 1 : 0;
        Claimant claimant;
        if (place) claimant = place->claimant();
        EndpointId handle = place ? place->handle() : 0;
        archive_.values(net, user, claimant.octets, claimant.pid, claimant.start_ticks, handle);
        if (archive_.importing()) {
            if (!make(index, net, user, claimant, handle)) return;
            place = core_.table().at(index);
        }
        archive_.values(place->life());
        if (!place->life().is_reserved()) exchange_admitted(*place);
    }

    bool make(std::uint32_t index, std::uint32_t net, std::uint32_t user, const Claimant& claimant,
              EndpointId handle) {
        const auto& users = core_.accounts().users();
        bool known = handle != 0 && !is_group(handle) && (handle & kHandleIndexMask) == index;
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
        known = known && net < core_.nets().size() && user < users.size();
#endif
        if (!archive_.require(known && core_.accounts().charge(*users[user], claimant.octets),
                              "an endpoint has no place, net or user"))
            return false;
        core_.table().put(std::make_unique<Endpoint>(*core_.nets()[net], *users[user], claimant,
                                                     handle, core_.config().pending_sends));
        return true;
    }

    void exchange_admitted(Endpoint& endpoint) {
        if (archive_.importing() && !map(endpoint)) return;
        bool has_member = endpoint.member() != nullptr;
        bool has_links = endpoint.links() != nullptr;
        bool has_offloads = endpoint.offloads() != nullptr;
        JobId job = endpoint.membership().job();
        archive_.values(job, has_member, has_links, has_offloads);
        if (archive_.importing()) {
            endpoint.membership().enter(job);
            if (has_links) endpoint.begin_links(std::make_unique<EndpointLinks>());
            if (has_offloads)
                endpoint.begin_offloads(core_.config().offloads_max,
                                        core_.config().offload_steps_max, core_.counters());
        }
        if (has_links) archive_.values(*endpoint.links());
        if (has_offloads) archive_.values(*endpoint.offloads());
        if (has_member) exchange_member(endpoint);
        if (!archive_.ok()) return;
        archive_.values(*endpoint.outlet());
        endpoint.sends().fields(archive_, endpoint.region(), endpoint.net().port().pool);
        archive_.values(endpoint);
    }

    /// The memory of a client, which stays where it is.
    bool map(Endpoint& endpoint) {
        const Mapping mapping = regions_.find(regions_.context, endpoint.handle());
        if (!archive_.require(!endpoint.life().has_memory() || mapping.region != nullptr,
                              "the memory of an endpoint is not here"))
            return false;
        if (!archive_.require(
                abi::validate_layout(mapping.layout, mapping.layout.region_octets) == Err::kOk,
                "the memory of an endpoint has no layout"))
            return false;
        endpoint.map(
            abi::Region(endpoint.life().has_memory() ? mapping.region : kNoRegion, mapping.layout),
            core_.counters(), mapping.interrupt, core_.config().wake != nullptr);
        return true;
    }

    void exchange_member(Endpoint& endpoint) {
        Rank rank = endpoint.member() ? endpoint.member()->rank() : 0;
        std::uint16_t size = endpoint.member() ? endpoint.member()->size() : 0;
        Nanos reorder_wait = endpoint.membership().reorder_wait();
        archive_.values(rank, size, reorder_wait);
        endpoint.membership().set_reorder_wait(reorder_wait);
        if (archive_.importing() && !make_member(endpoint, rank, size)) return;
        exchange_transport(*endpoint.member());
    }

    template <class Transport>
    void exchange_transport(Transport& transport) {
        if constexpr (requires { transport.fields(archive_); }) {
            archive_.values(transport);
        } else {
            archive_.fail("this library cannot export a transport");
        }
    }

    bool make_member(Endpoint& endpoint, Rank rank, std::uint16_t size) {
        urtp::TransportConfig config;
        config.rank = rank;
        std::vector<urtp::Peer> peers(size);
        if (endpoint.links() != nullptr) {
            config.profile =
                std::as_const(endpoint.net().jobs()).links().profile(endpoint.handle());
            config.mtu = endpoint.net().port().info.mtu;
            if (!archive_.require(rank == kNoRank && size > 0, "an endpoint of links has a rank"))
                return false;
        } else {
            JobView job;
            if (!archive_.require(endpoint.net().jobs().job(endpoint.membership().job(), job) &&
                                      rank < job.roster.size() && size == job.roster.size(),
                                  "the job of an endpoint is not formed"))
                return false;
            config.first_seq = job.first_seq;
            config.world = job.world;
            config.profile = job.profile;
            config.mtu = job.mtu;
            peers.assign(job.roster.begin(), job.roster.end());
        }
        urtp::Policy policy;
        urtp::Params params;
        if (!archive_.require(urtp::resolve(config.profile, policy, params) == Err::kOk,
                              "the profile of a job is not known"))
            return false;
        begin_transport(core_, endpoint, config, peers);
        return true;
    }

    // ---------------------------------------------------------------- what names endpoints

    /// 1 + its place; 0: none.
    [[nodiscard]] std::uint32_t user_of(const User& user) const {
        const auto& users = core_.accounts().users();
        const auto at =
            std::ranges::find_if(users, [&](const auto& u) { return u.get() == &user; });
        return static_cast<std::uint32_t>(1 + (at - users.begin()));
    }

    /// A list of endpoints, each once. may(endpoint): it may stand there.
    template <typename May>
    void exchange_list(std::vector<Endpoint*>& list, May may, const char* sentence) {
        const std::size_t size = archive_.count(list.size(), core_.table().places(), sentence);
        if (archive_.importing()) list.clear();
        for (std::size_t n = 0; n < size && archive_.ok(); ++n) {
            EndpointId handle = archive_.exporting() ? list[n]->handle() : 0;
            archive_.values(handle);
            if (archive_.exporting()) continue;
            Endpoint* endpoint = core_.find(handle);
            if (!archive_.require(endpoint != nullptr && may(*endpoint) &&
                                      std::ranges::count(list, endpoint) == 0,
                                  sentence))
                return;
            list.push_back(endpoint);
        }
    }

    void exchange_groups(Net& net) {
        std::size_t memberships = 0;
        net.groups().exchange(archive_, [&](LocalGroup& group) {
            std::uint32_t payer = group.payer != nullptr ? user_of(*group.payer) : 0;
            archive_.values(payer);
            exchange_list(
                group.members,
                [&](const Endpoint& e) {
                    return e.is_on(net) && e.membership().has_group(group.handle);
                },
                "a member of a group is not there");
            memberships += group.members.size();
            archive_.require(!group.members.empty(), "a group has no member");
            if (archive_.exporting() || payer == 0) return;
            const auto& users = core_.accounts().users();
            if (!archive_.require(payer <= users.size() &&
                                      core_.accounts().charge_group(*users[payer - 1], net.index()),
                                  "a group is on no account"))
                return;
            group.payer = users[payer - 1].get();
        });
        for (std::uint32_t n = 0; n < core_.table().places(); ++n)
            if (const Endpoint* endpoint = core_.table().at(n);
                endpoint != nullptr && endpoint->is_on(net))
                memberships -= endpoint->membership().groups().size();
        archive_.require(memberships == 0, "an endpoint is a member of a group that is not there");
    }

    void exchange_active() {
        const auto admitted = [](const Endpoint& e) { return !e.life().is_reserved(); };
        std::vector<Endpoint*> active(core_.table().active().begin(), core_.table().active().end());
        exchange_list(active, admitted, "an endpoint that has turns is not there");
        core_.table().set_active(std::move(active));
        std::size_t turns = 0;
        for (const auto& user : core_.accounts().users()) {
            exchange_list(
                user->active,
                [&](const Endpoint& e) { return &e.user() == user.get() && admitted(e); },
                "an endpoint that has turns is not its user's");
            turns += user->active.size();
        }
        std::size_t all = 0;
        for (std::uint32_t n = 0; n < core_.table().places(); ++n)
            if (const Endpoint* endpoint = core_.table().at(n); endpoint != nullptr)
                all += admitted(*endpoint) ? 1U : 0U;
        archive_.require(core_.table().active().size() == all && turns == all,
                         "an endpoint has no turn");
        if (archive_.importing()) core_.quiet().reserve(core_.table().active().size());
    }

    /// The clients at which quiet rounds look, in order. General rounds make the list again.
    void exchange_looks() {
        if (!core_.quiet().is_on()) return;
        std::vector<EndpointId> handles;
        for (const Look& look : core_.quiet().all_looks())
            handles.push_back(look.endpoint->handle());
        std::size_t from = core_.quiet().from();
        std::size_t to = core_.quiet().to();
        archive_.values(handles, from, to);
        if (archive_.exporting() ||
            !archive_.require(from <= to && to <= handles.size() &&
                                  handles.size() <= core_.table().active().size(),
                              "a round looks at clients that are not there"))
            return;
        for (const EndpointId handle : handles) {
            Endpoint* endpoint = core_.find(handle);
            if (!archive_.require(endpoint != nullptr && endpoint->life().has_memory(),
                                  "a round looks at a client that is not there"))
                return;
            core_.quiet().add_look(*endpoint);
        }
        core_.quiet().set_range(from, to);
    }

    Core& core_;
    state::Archive& archive_;
    const Regions& regions_;
};

}  // namespace

void EndpointTable::fields(state::Archive& archive) {
    ULC_STATE(archive, EndpointTable, 1, (generations_, next_place_), (places_, active_));
    archive.require(generations_.size() == places_.size() && next_place_ < places_.size(),
                    "the places of endpoints are another number");
}

void Quiet::fields(state::Archive& archive) {
    ULC_STATE(archive, Quiet, 1, (until_, moved_, still_rounds_, turn_after_),
              (looks_, from_, to_));
}

void Rounds::fields(state::Archive& archive) {
    ULC_STATE(archive, Rounds, 1, (turn_, user_turn_, now_, beats_, stopping_), (offloading_));
}

void Core::fields(state::Archive& archive) {
    ULC_STATE(archive, Core, 4, (tokens_, table_, quiet_, rounds_),
              (config_, own_counters_, counters_, accounts_, nets_, job_event_, verdicts_epoch_));
}

namespace {

std::string name_of(const Endpoint& endpoint) {
    return "process " + std::to_string(endpoint.claimant().pid) + " of user " +
           std::to_string(endpoint.user().uid) + " (endpoint " + std::to_string(endpoint.handle()) +
           ")";
}

bool has_collective(const Endpoint& endpoint) noexcept {
    return endpoint.offloads() != nullptr && !endpoint.offloads()->empty();
}

}  // namespace

void Engine::export_state(state::Exporter& exporter) const {
    for (const Endpoint* endpoint : core_->table().active()) {
        if (has_collective(*endpoint))
            return exporter.fail(name_of(*endpoint) +
                                 " has a collective that the engine carries "
                                 "out");
        if (endpoint->region().reaches_process())
            return exporter.fail(name_of(*endpoint) + " is the engine's own");
    }
    Exchange(*core_, exporter, {}).run();
}

std::string Engine::evict(Nanos now) {
    std::string names;
    core_->quiet().leave();  // the next round looks at other clients
    for (Endpoint* endpoint : core_->table().active()) {
        if (!has_collective(*endpoint)) continue;
        names += (names.empty() ? "" : ", ") + name_of(*endpoint);
        close_client(*core_, *endpoint, Err::kClosed, now);
    }
    return names;
}

void Engine::import_state(state::Importer& importer, const Regions& regions) {
    ULC_CHECK(core_->table().active().empty() && !core_->owns_counters());
    Exchange(*core_, importer, regions).run();
}

}  // namespace ulc::engine
