// Prints what each profile makes of a wire, as Markdown: docs/BENCHMARKS.md says with which arguments.
//   transport_table PROFILE…      incast, random loss and multicast, for each
#include <cstdio>
#include <string>
#include <vector>

#include "tests/sim/programs/goodput.h"

namespace {

using namespace ulc::sim;

void row(const char* name, const GoodputCase& c, double of) {
    const GoodputResult r = measure_goodput(c);
    std::printf("| %s | %s | %.1f %% | %.3f | %.2f | %.3f | %llu |\n", c.profile.c_str(), name,
                100 * r.share / of, r.jain, r.control, r.repeated,
                static_cast<unsigned long long>(r.dropped));
    std::fflush(stdout);
}

std::string rate_of(std::uint64_t bits) {
    return bits >= 1'000'000'000 ? std::to_string(bits / 1'000'000'000) + " Gb/s"
                                 : std::to_string(bits / 1'000'000) + " Mb/s";
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> profiles(argv + 1, argv + argc);
    if (profiles.empty()) profiles = {"urtp"};
    std::printf(
        "| profile | case | share | Jain | control | repairs | dropped |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (const std::string& profile : profiles) {
        for (const std::uint64_t rate : {100'000'000ULL, 1'000'000'000ULL, 10'000'000'000ULL}) {
            GoodputCase c;
            c.profile = profile;
            c.bits_per_second = rate;
            c.warm_up = 20'000'000'000'000'000LL / static_cast<ulc::Nanos>(rate);
            c.span = 3 * c.warm_up + 20 * ulc::kMillisecond;
            const std::string at = " at " + rate_of(rate);
            row(("one stream" + at).c_str(), c, 1);
            for (const std::uint16_t senders : {4, 16, 64}) {
                GoodputCase incast = c;
                incast.senders = senders;
                incast.buffer_octets = 65536;
                row((std::to_string(senders) + " to one, 64 KiB" + at).c_str(), incast, 1);
            }
            for (const double loss : {1e-3, 1e-2}) {
                GoodputCase lossy = c;
                lossy.loss = loss;
                char name[64];
                std::snprintf(name, sizeof name, "loss %g%s", loss, at.c_str());
                row(name, lossy, 1 - loss);
                lossy.receivers = 16;
                std::snprintf(name, sizeof name, "multicast to 16, loss %g%s", loss, at.c_str());
                row(name, lossy, 1 / multicast_transmissions(loss, 16));
            }
        }
    }
    return 0;
}
