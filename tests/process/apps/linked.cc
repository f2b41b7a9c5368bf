// SPDX-License-Identifier: BSD-3-Clause
// Links next to jobs in one process: each rank has an endpoint in the job of `ulc run`, one in a
// second job, and one that is open for links. Ranks send their addresses through the job; each
// calls the ranks after it. Then all three exchange messages at once.
//   linked         exit 0 if every message came whole and in order, and every link ended in order
#include <ulc.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLengths[] = {0, 1, 104, 105, 1486, 5000, 100'000};
constexpr unsigned kRounds = 21;
constexpr auto kLimit = 60s;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "linked: %s\n", what.c_str());
    std::exit(1);
}

std::vector<std::byte> payload_of(unsigned source, unsigned round) {
    std::vector<std::byte> octets(kLengths[round % std::size(kLengths)]);
    for (std::size_t at = 0; at < octets.size(); ++at)
        octets[at] = static_cast<std::byte>(at * 7 + source * 31 + round);
    return octets;
}

/// One endpoint and the peers that it exchanges messages with.
struct Party {
    ulc::Endpoint* endpoint;
    std::vector<std::uint16_t> peers;
    std::vector<unsigned> sources;  ///< rank of each peer
};

/// A message under way.
struct Flight {
    ulc::Endpoint* endpoint;
    ulc::Request request;
    std::vector<std::byte> octets;
    std::vector<std::byte> expected;  ///< payload of a receive
    bool receives;
};

/// Every party sends to each peer, and receives from each, in one round.
void exchange(std::vector<Party>& parties, std::vector<ulc::Endpoint*>& all, unsigned rank,
              unsigned round) {
    std::vector<std::unique_ptr<Flight>> flights;
    for (Party& party : parties) {
        for (std::size_t n = 0; n < party.peers.size(); ++n) {
            auto in = std::make_unique<Flight>();
            in->endpoint = party.endpoint;
            in->receives = true;
            in->expected = payload_of(party.sources[n], round);
            in->octets.resize(100'001);
            party.endpoint->start_receive(party.peers[n], round, in->octets, in->request);
            flights.push_back(std::move(in));
            auto out = std::make_unique<Flight>();
            out->endpoint = party.endpoint;
            out->receives = false;
            out->octets = payload_of(rank, round);
            party.endpoint->start_send(party.peers[n], round, out->octets, out->request);
            flights.push_back(std::move(out));
        }
    }
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (!flights.empty()) {
        for (ulc::Endpoint* endpoint : all)
            endpoint->poll();
        std::erase_if(flights, [&](const std::unique_ptr<Flight>& flight) {
            ulc::Received got{};
            if (!flight->endpoint->test(flight->request, &got)) return false;
            if (!flight->receives) return true;
            flight->octets.resize(got.length);
            if (flight->octets != flight->expected)
                fail("round " + std::to_string(round) + ": wrong octets from peer " +
                     std::to_string(got.source));
            return true;
        });
        if (std::chrono::steady_clock::now() > end) fail("messages are missing");
    }
}

/// Waits for requests of one endpoint while all are polled.
ulc::Received wait(std::vector<ulc::Endpoint*>& all, ulc::Endpoint& endpoint,
                   ulc::Request& request) {
    ulc::Received got{};
    while (!endpoint.test(request, &got))
        for (ulc::Endpoint* one : all)
            one->poll();
    return got;
}

std::vector<ulc_link_address> share_addresses(std::vector<ulc::Endpoint*>& all, ulc::Endpoint& job,
                                              const ulc_link_address& own) {
    std::vector<ulc_link_address> addresses(job.size());
    addresses[job.rank()] = own;
    std::vector<ulc::Request> requests(2U * job.size());
    for (std::uint16_t rank = 0; rank < job.size(); ++rank) {
        if (rank == job.rank()) continue;
        job.start_receive(rank, 1000, std::as_writable_bytes(std::span(&addresses[rank], 1)),
                          requests[rank]);
        job.start_send(rank, 1000, std::as_bytes(std::span(&own, 1)), requests[job.size() + rank]);
    }
    for (std::uint16_t rank = 0; rank < job.size(); ++rank) {
        if (rank == job.rank()) continue;
        wait(all, job, requests[rank]);
        wait(all, job, requests[job.size() + rank]);
    }
    return addresses;
}

/// Calls the ranks after this one, and waits for the calls of those before. A caller first says its
/// rank.
Party link_all(std::vector<ulc::Endpoint*>& all, ulc::Endpoint& links, unsigned rank,
               const std::vector<ulc_link_address>& addresses) {
    Party party{&links, {}, {}};
    for (unsigned other = rank + 1; other < addresses.size(); ++other) {
        ulc::Request request;
        if (ulc_link(links.handle(), &addresses[other], 10'000'000'000, request.handle()) != ULC_OK)
            fail("a call was not taken");
        party.peers.push_back(wait(all, links, request).source);
        party.sources.push_back(other);
        ulc::Request said;
        links.start_send(party.peers.back(), 999, std::as_bytes(std::span(&rank, 1)), said);
        wait(all, links, said);
    }
    for (unsigned n = 0; n < rank; ++n) {
        unsigned other = 0;
        ulc::Request request;
        links.start_receive(ULC_RANK_ANY, 999, std::as_writable_bytes(std::span(&other, 1)),
                            request);
        party.peers.push_back(wait(all, links, request).source);
        party.sources.push_back(other);
    }
    return party;
}

Party ranks_of(ulc::Endpoint& job) {
    Party party{&job, {}, {}};
    for (std::uint16_t rank = 0; rank < job.size(); ++rank) {
        if (rank == job.rank()) continue;
        party.peers.push_back(rank);
        party.sources.push_back(rank);
    }
    return party;
}

void run() {
    ulc::Endpoint job;
    ulc::Endpoint second;
    ulc::Endpoint links;
    job.join();
    second.join("another job", job.rank(), job.size(), kLimit);
    links.open_links(8, kLimit);
    std::vector<ulc::Endpoint*> all{&job, &second, &links};
    const unsigned rank = job.rank();
    const auto addresses = share_addresses(all, job, links.address());
    std::vector<Party> parties{ranks_of(job), ranks_of(second),
                               link_all(all, links, rank, addresses)};
    for (unsigned round = 0; round < kRounds; ++round)
        exchange(parties, all, rank, round);

    // The first of two ends the link, the other finds that it has left.
    for (std::size_t n = 0; n < parties[2].peers.size(); ++n) {
        const std::uint16_t peer = parties[2].peers[n];
        if (parties[2].sources[n] < rank)
            while (ulc_peer_state(links.handle(), peer) == ULC_OK)
                for (ulc::Endpoint* endpoint : all)
                    endpoint->poll();
        const bool left = ulc_peer_state(links.handle(), peer) == ULC_ERR_PEER_LEFT;
        if (parties[2].sources[n] < rank && !left) fail("a peer that unlinked did not leave");
        ulc::Request ending;
        if (ulc_unlink(links.handle(), peer, ending.handle()) != ULC_OK) fail("unlink refused");
        wait(all, links, ending);
    }
    std::printf("rank %u: %zu links\n", rank, parties[2].peers.size());
    links.leave();
    second.leave();
    job.leave();
}

}  // namespace

int main() {
    try {
        run();
    } catch (const ulc::Error& error) {
        fail(error.what());
    }
    return 0;
}
