// SPDX-License-Identifier: BSD-3-Clause
// A rank of libfabric that ends while its peer does not run: the provider says how many bytes were
// not delivered, and to which rank. Rank 0 prints "all right" if nothing else failed.
//   ulc run -n 2 --nodes 2 --embedded -- process_unheard FOLDER
#include <signal.h>

#include "fabric_ranks.h"

namespace {

using namespace ulc::test;

constexpr int kMessages = 3;
constexpr std::size_t kLength = 1000;

/// Returns the state of a process in /proc, such as 'T' for a stopped one.
char state_of(pid_t process) {
    std::ifstream in("/proc/" + std::to_string(process) + "/stat");
    std::string word;
    char state = 0;
    in >> word >> word >> state;
    return state;
}

void end_unheard(const std::string& pid_file) {
    pid_t peer = 0;
    while (!(std::ifstream(pid_file) >> peer) || state_of(peer) != 'T') {
        check_time(__LINE__);
        ::usleep(1000);
    }
    for (int n = 0; n < kMessages; ++n)
        inject(std::string(kLength, 'x'), 1);
    close_endpoint();
    CHECK(::kill(peer, SIGCONT) == 0);
    if (failures == 0) std::printf("rank 0: all right\n");
}

}  // namespace

int main(int, char** argv) {
    rank = std::atoi(std::getenv("ULC_RANK"));
    const std::string folder = argv[1];
    open_endpoint();
    exchange_addresses(folder);
    meet();
    if (rank == 0) {
        end_unheard(folder + "/pid");
        return failures == 0 ? 0 : 1;
    }
    std::ofstream(folder + "/pid.new") << ::getpid() << "\n";
    std::rename((folder + "/pid.new").c_str(), (folder + "/pid").c_str());
    ::raise(SIGSTOP);
    _exit(0);
}
