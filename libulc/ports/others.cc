// SPDX-License-Identifier: BSD-3-Clause
#include "ports/others.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>

#include "ports/gamma.h"

namespace ulc::ports {
namespace {

constexpr const char* kHostFile = "/etc/gamma.conf";
constexpr int kNoCommand = 127;

std::string environment(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
    return value == nullptr ? "" : value;
}

bool complain(const std::string& text) {
    std::fprintf(stderr, "gamma_init: %s\n", text.c_str());
    return false;
}

std::string read_whole(const char* path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string own_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// The words that started this process.
std::vector<std::string> own_words() {
    const std::string text = read_whole("/proc/self/cmdline");
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size(); at += words.back().size() + 1)
        words.emplace_back(text.c_str() + at);
    return words;
}

/// The program as a path: a shell on another host may find another one by its name.
std::string path_of_program(const std::string& word) {
    if (word.find('/') != std::string::npos) return word;
    std::array<char, 4096> path{};
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
    return length > 0 ? path.data() : word;
}

std::string hexadecimal(std::span<const unsigned char> bytes) {
    std::string text;
    for (const unsigned char byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

/// In the child: becomes the command. Only async-signal-safe calls.
[[noreturn]] void become(char** words, char** variables, int input, pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && dup2(input, STDIN_FILENO) >= 0) execvpe(words[0], words, variables);
    _exit(kNoCommand);
}

}  // namespace

std::vector<std::string> other_hosts(const std::string& text, const std::string& own) {
    const auto is_own = [&](const std::string& host) {
        const std::string name = host.substr(host.find('@') + 1);  // all of it without '@'
        const bool both_long =
            name.find('.') != std::string::npos && own.find('.') != std::string::npos;
        if (both_long) return name == own;
        return name.substr(0, name.find('.')) == own.substr(0, own.find('.'));
    };
    std::vector<std::string> hosts;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string host;
        if (words >> host && !is_own(host) && std::ranges::find(hosts, host) == hosts.end())
            hosts.push_back(std::move(host));
    }
    return hosts;
}

std::string Others::host_file() {
    std::string file = environment("ULC_HOSTS");
    if (file.empty() && access(kHostFile, R_OK) == 0) file = kHostFile;
    return file;
}

bool Others::start(const std::string& file, int num_nodes, int argc, char** argv) {
    if (access(file.c_str(), R_OK) != 0)
        return complain("cannot read the host file " + file + " (" + std::strerror(errno) +
                        "); write a host a line into it, or name another by ULC_HOSTS");
    std::vector<std::string> hosts = other_hosts(read_whole(file.c_str()), own_name());
    const auto others_max = static_cast<std::size_t>(GAMMA_NODES_MAX - 1);
    std::size_t others = std::min(hosts.size(), others_max);
    if (num_nodes > 0) others = std::min(others, static_cast<std::size_t>(num_nodes) - 1);
    hosts.resize(others);
    instances_ = 1 + static_cast<int>(others);
    std::array<unsigned char, 4> number{};
    if (getrandom(nonce_.data(), nonce_.size(), 0) != static_cast<ssize_t>(nonce_.size()) ||
        getrandom(number.data(), number.size(), 0) != static_cast<ssize_t>(number.size()))
        return complain("no random numbers");
    job_ = "gamma-" + hexadecimal(number);
    if (others == 0) return true;
    std::vector<std::string> words =
        argv != nullptr && argc > 0 ? std::vector<std::string>(argv, argv + argc) : own_words();
    if (words.empty()) return complain("the program's words are not known; give argc and argv");
    words[0] = path_of_program(words[0]);
    std::string lines;
    for (const std::string& host : hosts)
        lines += host + "\n";
    return spawn(words, lines);
}

bool Others::spawn(const std::vector<std::string>& program, const std::string& hosts) {
    const std::string given = environment("ULC_PATH");
    std::vector<std::string> words{given.empty() ? "ulc" : given,
                                   "run",
                                   "--hosts",
                                   "/dev/stdin",
                                   "--others",
                                   "--job",
                                   job_,
                                   "-n",
                                   std::to_string(instances_)};
    if (const std::string ssh = environment("ULC_SSH"); !ssh.empty())
        words.insert(words.end(), {"--ssh", ssh});
    if (!environment("ULC_PROFILE").empty()) words.insert(words.end(), {"--export", "ULC_PROFILE"});
    words.emplace_back("--");
    words.insert(words.end(), program.begin(), program.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    std::string nonce = "ULC_NONCE=" + hexadecimal(nonce_);
    std::vector<char*> variables;
    for (char** variable = environ; *variable != nullptr; ++variable)
        variables.push_back(*variable);
    variables.insert(variables.end(), {nonce.data(), nullptr});
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return complain(std::string("no pipe: ") + strerror(errno));
    const pid_t parent = getpid();
    command_ = fork();
    if (command_ == 0) become(argv.data(), variables.data(), ends[0], parent);
    close(ends[0]);
    // All hosts fit into the pipe, or the command reads them; it may be gone already.
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before);
    const bool written = command_ > 0 && write(ends[1], hosts.data(), hosts.size()) ==
                                             static_cast<ssize_t>(hosts.size());
    sigaction(SIGPIPE, &before, nullptr);
    close(ends[1]);
    if (written) return true;
    return complain("the command " + words[0] +
                    " could not be started; is it installed? name it in ULC_PATH");
}

bool Others::have_ended() noexcept {
    int status = 0;
    if (command_ <= 0 || waitpid(command_, &status, WNOHANG) != command_) return command_ <= 0;
    command_ = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoCommand)
        static_cast<void>(complain("the command ulc is not in PATH; name it in ULC_PATH"));
    return true;
}

void Others::wait() noexcept {
    while (command_ > 0 && waitpid(command_, nullptr, 0) < 0 && errno == EINTR) {
    }
    command_ = -1;
}

void Others::finish() noexcept {
    if (command_ > 0 && !is_complete_) kill(command_, SIGTERM);
    wait();
}

}  // namespace ulc::ports
