// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/doctor/report.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <regex>
#include <string_view>
#include <vector>

#include "tools/ulc/doctor/files.h"
#include "tools/ulc/watch/counter_page.h"

namespace ulc::tools {
namespace {

constexpr unsigned kLogLines = 200;

/// Returns the line of a text that begins so, without the beginning.
std::string line_after(const std::string& text, const std::string& beginning) {
    const auto at = ("\n" + text).find("\n" + beginning);
    if (at == std::string::npos) return "unknown";
    const auto start = at + beginning.size();
    return text.substr(start, text.find('\n', start) - start);
}

std::string machine(const std::string& root) {
    utsname kernel{};
    static_cast<void>(::uname(&kernel));
    const std::string processor = line_after(whole_file(root + "/proc/cpuinfo"), "model name\t");
    return fmt::format("kernel: {} {} {}\nsystem: {}\nprocessor{}\nkernel's options: {}\n",
                       kernel.sysname, kernel.release, kernel.machine,
                       line_after(whole_file(root + "/etc/os-release"), "PRETTY_NAME="), processor,
                       first_line(root + "/proc/cmdline"));
}

std::string network_devices(const std::string& root) {
    const std::string folder = root + "/sys/class/net";
    std::string out;
    for (const auto& name : names_in(folder)) {
        const std::string device = fmt::format("{}/{}", folder, name);
        const std::string driver = link_name(device + "/device/driver");
        out += fmt::format("{}: driver {}, {}, MTU {} B, {} Mb/s, MAC {}\n", name,
                           driver.empty() ? "none" : driver, first_line(device + "/operstate"),
                           first_line(device + "/mtu"), number_in(device + "/speed", -1),
                           first_line(device + "/address"));
    }
    return out;
}

std::string environment() {
    static constexpr std::array<std::string_view, 7> kBeginnings = {
        "ULC_", "OMPI_MCA_", "FI_", "MPIR_CVAR_", "UCX_", "LD_PRELOAD=", "LD_LIBRARY_PATH="};
    std::vector<std::string> found;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        if (std::any_of(kBeginnings.begin(), kBeginnings.end(),
                        [&](std::string_view beginning) { return text.starts_with(beginning); }))
            found.emplace_back(text);
    }
    std::sort(found.begin(), found.end());
    std::string out;
    for (const auto& line : found)
        out += line + "\n";
    return out;
}

std::string configuration(const std::string& root) {
    const std::string folder = root + "/etc/ulc";
    std::string out;
    for (const auto& name : names_in(folder)) {
        if (!name.ends_with(".toml")) continue;
        const std::string path = fmt::format("{}/{}", folder, name);
        out += fmt::format("# {}\n{}\n", path, whole_file(path));
    }
    return out;
}

std::string counters(const std::string& engine) {
    CounterPage page;
    std::string error;
    const std::string socket = counter_socket(engine, &error);
    if (socket.empty() || !page.open(socket, &error)) return error + "\n";
    const auto values = page.values();
    std::string out =
        fmt::format("engine {}: {} endpoints, ports {}\n", socket, page.endpoints(), page.ports());
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != 0) out += fmt::format("{} {}\n", page.names()[i], values[i]);
    return out;
}

std::string log_of_engines() {
    struct Close {
        void operator()(std::FILE* pipe) const noexcept { ::pclose(pipe); }
    };
    const std::string command = fmt::format(
        "journalctl --quiet --no-pager --lines={} --unit='ulc-engine@*' 2>&1", kLogLines);
    const std::unique_ptr<std::FILE, Close> pipe(::popen(command.c_str(), "re"));
    std::string out;
    char part[4096];
    while (pipe != nullptr && std::fgets(part, sizeof part, pipe.get()) != nullptr)
        out += part;
    return out;
}

void add(std::string& out, std::string_view title, const std::string& text) {
    out += fmt::format("\n== {}\n{}", title, text.empty() ? "none\n" : text);
}

}  // namespace

const char* word_of(Level level) {
    switch (level) {
        case Level::kOk:
            return "ok";
        case Level::kWarn:
            return "warn";
        case Level::kFail:
            return "fail";
    }
    return "";
}

std::string text_of(const Findings& findings) {
    std::string out;
    for (const auto& f : findings) {
        out += fmt::format("{:<5} {:<20} {}\n", word_of(f.level), f.topic, f.text);
        if (!f.fix.empty()) out += fmt::format("      {:<20} fix: {}\n", "", f.fix);
    }
    return out;
}

std::string without_secrets(std::string text) {
    static const std::regex kMemifSecret("(secret=)(\"[^\"]*\"|'[^']*'|[^,\"'\\s]+)");
    static const std::regex kLongNumber("(0x)?[0-9a-fA-F]{32,}");
    static const std::regex kMac(
        "\\b((?:[0-9a-fA-F]{2}:){3})(?:[0-9a-fA-F]{2}:){2}[0-9a-fA-F]{2}\\b");
    text = std::regex_replace(text, kMemifSecret, "$1(removed)");
    text = std::regex_replace(text, kLongNumber, "(removed)");
    return std::regex_replace(text, kMac, "$1xx:xx:xx");
}

std::string report_text(const std::string& root, const std::string& engine,
                        const Findings& findings) {
    std::string out = fmt::format("ULC {}, {:%Y-%m-%d %H:%M:%S} UTC\n", ULC_VERSION,
                                  fmt::gmtime(std::time(nullptr)));
    add(out, "machine", machine(root));
    add(out, "findings of ulc doctor", text_of(findings));
    add(out, "network devices", network_devices(root));
    add(out, "environment", environment());
    add(out, "configuration", configuration(root));
    add(out, "engine", counters(engine));
    if (root.empty()) add(out, fmt::format("log, last {} lines", kLogLines), log_of_engines());
    return without_secrets(std::move(out));
}

std::string write_report(const std::string& path, const std::string& text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno == EEXIST
                   ? fmt::format("{} is there already; name a new file", path)
                   : fmt::format("cannot write {}: {}; name a file in a folder of yours", path,
                                 std::strerror(errno));
    }
    std::size_t written = 0;
    int error = 0;
    while (written < text.size() && error == 0) {
        const ssize_t n = ::write(fd, text.data() + written, text.size() - written);
        if (n >= 0) written += static_cast<std::size_t>(n);
        if (n < 0 && errno != EINTR) error = errno;
    }
    if (::close(fd) != 0 && error == 0) error = errno;
    if (error == 0) return "";
    ::unlink(path.c_str());
    return fmt::format("cannot write {}: {}; make space there", path, std::strerror(error));
}

}  // namespace ulc::tools
