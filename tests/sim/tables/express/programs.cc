// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tables/express/programs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/apps/router/circuit.h"
#include "bench/apps/sor/grid.h"

namespace ulc::sim {
namespace {

using Memories = std::vector<std::unique_ptr<SharedMemory>>;

/// Times of the part that is measured.
struct Times {
    Nanos begun = kNever;
    Nanos ended = 0;
    Nanos computing = 0;  ///< sum over the processes

    void begin(Nanos now) { begun = std::min(begun, now); }
    void end(Nanos now) { ended = std::max(ended, now); }
};

/// Counts of the cluster that a run begins with, to be taken away.
struct Before {
    std::uint64_t messages = 0;
    std::uint64_t reserved = 0;
    std::uint64_t refused = 0;
};

Before counts_of(const SimCluster& cluster) {
    return {cluster.count(Counter::messages_received), cluster.count(Counter::reserve_sent),
            cluster.count(Counter::refuse_sent)};
}

ProgramFigures figures_of(ExpressRun& run, const Memories& memories, const Times& times) {
    ProgramFigures figures;
    figures.seconds = static_cast<double>(times.ended - times.begun) / kSecond;
    figures.computing = static_cast<double>(times.computing) / kSecond / run.processes();
    std::uint64_t polled = 0;
    std::uint64_t handled = 0;
    for (std::uint16_t rank = 0; rank < run.processes(); ++rank) {
        polled += run.process(rank).polled();
        handled += run.process(rank).polled() + run.process(rank).interrupted();
        figures.counts.add(memories[rank]->node().counts());
    }
    const Before now = counts_of(run.cluster());
    const auto share = [](std::uint64_t part, std::uint64_t whole) {
        return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
    };
    figures.messages = handled;
    figures.polled = share(polled, handled);
    figures.optimistic = 1 - share(now.reserved, handled);
    figures.refused = share(now.refused, handled);
    return figures;
}

/// Returns the memory as the processes see it. No bytes: two of them see different bytes.
std::vector<std::byte> whole_of(const Memories& memories) {
    std::vector<std::byte> whole;
    for (std::uint32_t page = 0; page < memories[0]->pages(); ++page) {
        std::span<const std::byte> seen;
        for (const auto& memory : memories) {
            if (!memory->node().allows(page, false)) continue;
            if (seen.empty()) seen = memory->page(page);
            if (!std::ranges::equal(seen, memory->page(page))) return {};
        }
        if (seen.empty()) return {};
        whole.insert(whole.end(), seen.begin(), seen.end());
    }
    return whole;
}

// ---------------------------------------------------------------- red/black over-relaxation

struct Access {
    const void* at;
    bool writes;
};

/// Waits until all may be accessed at the same time.
void fetch_all(SharedMemory& memory, std::span<const Access> accesses) {
    for (bool again = true; std::exchange(again, false);) {
        for (const Access& access : accesses) {
            if (memory.allows(access.at, access.writes)) continue;
            memory.fetch(access.at, access.writes);
            again = true;
        }
    }
}

void run_half_step(ExpressProcess& process, SharedMemory& memory, const sor::Grid& grid,
                   const sor::Block& block, unsigned colour, Nanos row_time) {
    const std::size_t end = std::min(block.end, grid.size.rows - 1);
    for (std::size_t row = std::max<std::size_t>(block.first, 1); row < end; ++row) {
        const Access accesses[] = {{grid.line(1 - colour, row - 1), false},
                                   {grid.line(1 - colour, row), false},
                                   {grid.line(1 - colour, row + 1), false},
                                   {grid.line(colour, row), true}};
        fetch_all(memory, accesses);
        sor::relax_row(grid, row, colour);
        memory.release();
        process.compute(row_time);
    }
}

std::string check_sor(const std::vector<std::byte>& whole, const sor::Size& size,
                      unsigned iterations) {
    if (whole.empty()) return "processes see different bytes of a page";
    std::vector<double> points(size.points());
    std::memcpy(points.data(), whole.data(), points.size() * sizeof(double));
    const sor::Grid grid{points.data(), size};
    const std::vector<double> expected = sor::plain_result(size, iterations);
    for (std::size_t row = 0; row < size.rows; ++row)
        for (std::size_t column = 0; column < size.columns; ++column)
            if (std::bit_cast<std::uint64_t>(grid.at(row, column)) !=
                std::bit_cast<std::uint64_t>(expected[row * size.columns + column]))
                return "a point differs from that of one process";
    return {};
}

// ---------------------------------------------------------------- the router

/// A process's part of the router. The shared memory holds, each from a page on: the number of the
/// first wire that is not taken, by round; the cost of each point; the route of each wire.
class RouterPart {
public:
    RouterPart(ExpressProcess& process, SharedMemory& memory,
               const std::vector<router::Wire>& wires, Nanos point_time, bool copies, Times& times)
        : process_(process),
          memory_(memory),
          wires_(wires),
          point_time_(point_time),
          copies_(copies),
          copied_(copies ? router::Size{}.points() : 0),
          times_(times) {}

    static std::size_t costs_at() { return SharedMemory::kPage; }
    static std::size_t routes_at() {
        const std::size_t octets = router::Size{}.points() * sizeof(std::int32_t);
        return costs_at() +
               (octets + SharedMemory::kPage - 1) / SharedMemory::kPage * SharedMemory::kPage;
    }
    static std::size_t octets(std::size_t wires) {
        return routes_at() + wires * sizeof(router::Route);
    }

    void work(unsigned round) {
        for (;;) {
            const std::uint32_t wire = next_wire(round);
            if (wire >= wires_.size()) return;
            route(wire);
        }
    }

private:
    static constexpr Nanos kAtOnce = 100 * kMicrosecond;  ///< computed in one piece

    template <typename T>
    T* at(std::size_t offset) {
        return reinterpret_cast<T*>(memory_.data() + offset);
    }
    /// Performs an access to an object, which is over when it returns.
    template <typename T, typename Perform>
    auto access(T* object, bool writes, Perform&& perform) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(object);
        const Access ends[] = {{bytes, writes}, {bytes + sizeof(T) - 1, writes}};
        if (memory_.allows(ends[0].at, writes) && memory_.allows(ends[1].at, writes))
            return perform();
        compute();
        fetch_all(memory_, ends);
        const auto result = perform();
        memory_.release();
        return result;
    }
    void compute() {
        times_.computing += pending_;
        if (pending_ > 0) process_.compute(std::exchange(pending_, 0));
    }
    static std::size_t place_of(const router::Point& point) {
        return static_cast<std::size_t>(point.channel) *
                   static_cast<std::size_t>(router::Size{}.columns) +
               static_cast<std::size_t>(point.column);
    }
    std::int32_t* cost_of(const router::Point& point) {
        return at<std::int32_t>(costs_at()) + place_of(point);
    }
    std::int32_t read(const router::Point& point) {
        const std::int32_t* const cost = cost_of(point);
        return access(cost, false, [&] { return *cost; });
    }
    /// Copies the costs that the wire's route may pass.
    void copy_costs(const router::Wire& wire) {
        router::each_point_around(router::Size{}, wire, [&](const router::Point& point) {
            copied_[place_of(point)] = read(point);
        });
    }
    void charge() {
        pending_ += point_time_;
        if (pending_ >= kAtOnce) compute();
    }

    std::uint32_t next_wire(unsigned round) {
        compute();
        memory_.lock(0);
        auto* const next = at<std::uint32_t>(0) + round;
        const std::uint32_t wire = access(next, true, [&] { return (*next)++; });
        memory_.unlock(0);
        return wire;
    }
    void change(const router::Wire& wire, const router::Route& route, std::int32_t by) {
        router::walk(wire, route, [&](const router::Point& point) {
            std::int32_t* const cost = cost_of(point);
            access(cost, true, [&] { return *cost += by; });
            charge();
        });
    }
    void route(std::size_t number) {
        const router::Wire& wire = wires_[number];
        auto* const place = at<router::Route>(routes_at()) + number;
        const router::Route old = access(place, false, [&] { return *place; });
        if (old[0].kind != router::Bend::kNone) change(wire, old, -1);
        if (copies_) copy_costs(wire);
        const router::Route best =
            router::best_route(router::Size{}, wire, [&](const router::Point& point) {
                charge();
                return copies_ ? copied_[place_of(point)] : read(point);
            });
        change(wire, best, 1);
        access(place, true, [&] { return *place = best; });
    }

    ExpressProcess& process_;
    SharedMemory& memory_;
    const std::vector<router::Wire>& wires_;
    Nanos point_time_;
    bool copies_;
    std::vector<std::int32_t> copied_;  ///< by point
    Times& times_;
    Nanos pending_ = 0;
};

std::string check_router(const std::vector<std::byte>& whole,
                         const std::vector<router::Wire>& wires) {
    if (whole.empty()) return "processes see different bytes of a page";
    const router::Size size;
    std::vector<router::Route> routes(wires.size());
    std::memcpy(routes.data(), whole.data() + RouterPart::routes_at(),
                routes.size() * sizeof(router::Route));
    for (std::size_t n = 0; n < wires.size(); ++n)
        if (!router::is_connected(size, wires[n], routes[n])) return "a wire is not connected";
    const auto sum = router::sum_of(size, wires, routes.data());
    if (std::memcmp(sum.data(), whole.data() + RouterPart::costs_at(),
                    sum.size() * sizeof(std::int32_t)) != 0)
        return "the costs are not the sums of the routes";
    return {};
}

}  // namespace

ProgramFigures run_sor(const ExpressSystem& system, const SorProgram& program) {
    const sor::Size size{program.rows, program.columns};
    const auto row_time = static_cast<Nanos>(size.half()) * system.point;
    ExpressRun run(system.cluster, system.rules);
    Memories memories(run.processes());
    Times times;
    const bool ended = run.run([&](ExpressProcess& process) {
        auto& memory = memories[process.rank()];
        memory =
            std::make_unique<SharedMemory>(process, size.points() * sizeof(double), system.memory);
        const sor::Grid grid{reinterpret_cast<double*>(memory->data()), size};
        const sor::Block block = sor::block_of(size, process.rank(), process.processes());
        process.barrier();
        for (std::size_t row = block.first; row < block.end; ++row) {
            const Access lines[] = {{grid.line(0, row), true}, {grid.line(1, row), true}};
            fetch_all(*memory, lines);
            sor::fill(grid, {row, row + 1});
            memory->release();
        }
        process.barrier();
        times.begin(process.now());
        for (unsigned half = 0; half < 2 * program.iterations; ++half) {
            if (program.pages_first) {
                sor::each_shared_line(grid, block, half % 2, [&](const double* line, bool writes) {
                    const Access one[] = {{line, writes}};
                    fetch_all(*memory, one);
                    memory->release();
                });
                process.barrier();
            }
            run_half_step(process, *memory, grid, block, half % 2, row_time);
            times.computing += static_cast<Nanos>(block.end - block.first) * row_time;
            process.barrier();
        }
        times.end(process.now());
    });
    if (!ended) return {.error = "the run does not end"};
    ProgramFigures figures = figures_of(run, memories, times);
    figures.error = check_sor(whole_of(memories), size, program.iterations);
    return figures;
}

ProgramFigures run_router(const ExpressSystem& system, const RouterProgram& program) {
    const auto wires = router::random_circuit(router::Size{}, program.wires, program.seed);
    ExpressRun run(system.cluster, system.rules);
    Memories memories(run.processes());
    Times times;
    const bool ended = run.run([&](ExpressProcess& process) {
        auto& memory = memories[process.rank()];
        memory = std::make_unique<SharedMemory>(process, RouterPart::octets(wires.size()),
                                                system.memory);
        RouterPart part(process, *memory, wires, system.point, program.copies, times);
        process.barrier();
        times.begin(process.now());
        for (unsigned round = 0; round < program.rounds; ++round) {
            part.work(round);
            process.barrier();
        }
        times.end(process.now());
    });
    if (!ended) return {.error = "the run does not end"};
    ProgramFigures figures = figures_of(run, memories, times);
    figures.error = check_router(whole_of(memories), wires);
    return figures;
}

}  // namespace ulc::sim
