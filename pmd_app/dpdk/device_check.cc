// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/device_check.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <rte_dev.h>
#include <rte_ethdev.h>

namespace ulc::dpdk {
namespace {

/// Performs one interface ioctl on a temporary socket; returns 0 or errno.
int interface_ioctl(unsigned long request, const std::string& name, ifreq& answer) {
    answer = {};
    name.copy(answer.ifr_name, IFNAMSIZ - 1);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    const int error = ioctl(fd, request, &answer) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/// A misspelt argument makes memif ignore all of them, silently, and af_packet fail without a
/// reason.
Err check_argument_names(const DeviceSpec& spec, std::string_view known, std::string& why) {
    for (const std::string& argument : spec.arguments) {
        const std::string name = argument.substr(0, argument.find('='));
        if ((" " + std::string(known) + " ").find(" " + name + " ") != std::string::npos) continue;
        why = spec.name + " has no argument '" + name + "'; it takes: " + std::string(known);
        return Err::kInvalid;
    }
    return Err::kOk;
}

Err check_interface(const DeviceSpec& spec, std::uint16_t& mtu, std::string& why) {
    if (const Err error =
            check_argument_names(spec, "iface qpairs blocksz framesz framecnt qdisc_bypass", why);
        error != Err::kOk)
        return error;
    const std::string name = spec.argument("iface").value_or("");
    if (name.empty()) {
        why = spec.name + " needs iface=NAME, one of those that 'ip link' shows";
        return Err::kInvalid;
    }
    ifreq answer;
    if (const int error = interface_ioctl(SIOCGIFFLAGS, name, answer); error != 0) {
        why = "no network interface '" + name + "' (" +
              std::strerror(error) +  // NOLINT(concurrency-mt-unsafe): start-up
              "); 'ip link' shows those there are";
        return Err::kInvalid;
    }
    if ((answer.ifr_flags & IFF_UP) == 0) {
        why = "network interface " + name + " is down; run: ip link set " + name + " up";
        return Err::kPortDown;
    }
    if (interface_ioctl(SIOCGIFMTU, name, answer) != 0) return Err::kOk;
    const int has = answer.ifr_mtu;
    if (mtu == 0) {
        mtu = static_cast<std::uint16_t>(has > 9600 ? 9600 : has);
    } else if (mtu > has) {
        why = "network interface " + name + " has MTU " + std::to_string(has) +
              ", less than mtu = " + std::to_string(mtu) + "; run: ip link set " + name + " mtu " +
              std::to_string(mtu) + ", or lower mtu on every node";
        return Err::kInvalid;
    }
    return Err::kOk;
}

/// Returns true if a port of this process already listens on the path (several memif ids share a
/// socket).
bool socket_is_ours(const std::string& path) {
    std::uint16_t id = 0;
    RTE_ETH_FOREACH_DEV(id) {
        rte_eth_dev_info info;
        if (rte_eth_dev_info_get(id, &info) != 0 || info.device == nullptr) continue;
        const rte_devargs* devargs = rte_dev_devargs(info.device);
        if (devargs == nullptr || devargs->args == nullptr) continue;
        if (std::string(devargs->args).find("socket=" + path) != std::string::npos) return true;
    }
    return false;
}

/// Returns true if a process has the socket open. It is asked with the wrong socket type, which a
/// live socket refuses (EPROTOTYPE) without noticing: DPDK's memif server aborts when a connection
/// is closed before its greeting.
bool somebody_listens(const sockaddr_un& address) {
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    const auto* any = reinterpret_cast<const sockaddr*>(&address);
    const bool listens = connect(fd, any, sizeof address) == 0 || errno != ECONNREFUSED;
    close(fd);
    return listens;
}

/// Checks the folder in which a socket is to be made or found.
Err check_socket_folder(const std::string& path, bool to_write, std::string& why) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "."
                               : slash == 0               ? "/"
                                                          : path.substr(0, slash);
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
        why = "memif socket '" + path + "': there is no folder " + folder + "; run: mkdir -p " +
              folder + ", or choose another socket path";
        return Err::kInvalid;
    }
    if (to_write && access(folder.c_str(), W_OK) != 0) {
        why = "memif socket '" + path + "' cannot be made: this user may not write to " + folder +
              "; choose another socket path";
        return Err::kPermission;
    }
    return Err::kOk;
}

Err check_memif(const DeviceSpec& spec, std::string& why) {
    if (const Err error = check_argument_names(
            spec, "id role bsize rsize socket socket-abstract mac secret zero-copy", why);
        error != Err::kOk)
        return error;
    const std::string role = spec.argument("role").value_or("client");
    const std::string path = spec.argument("socket").value_or("/run/memif.sock");
    const bool abstract = spec.argument("socket-abstract").value_or("no") != "no";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        why = "memif socket path '" + path + "' is longer than " +
              std::to_string(sizeof address.sun_path - 1) + " characters; choose a shorter one";
        return Err::kInvalid;
    }
    if (abstract && spec.argument("secret").value_or("").empty()) {
        why =
            "an abstract memif socket has no owner, so that every local user may connect to it; "
            "add "
            "secret=WORD on both sides, or leave socket-abstract out";
        return Err::kInvalid;
    }
    if (abstract) return Err::kOk;
    if (const Err error = check_socket_folder(path, role == "server", why); error != Err::kOk)
        return error;
    if (role != "server") return Err::kOk;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || socket_is_ours(path)) return Err::kOk;
    if (!S_ISSOCK(status.st_mode)) {
        why = "'" + path + "' exists and is not a socket; choose another socket path";
        return Err::kInvalid;
    }
    if (somebody_listens(address)) {
        why =
            "memif socket '" + path +
            "' is in use by another process; end it or choose another socket path (or role=client)";
        return Err::kInvalid;
    }
    if (unlink(path.c_str()) != 0) {
        why = "stale memif socket '" + path + "' cannot be removed: " +
              std::strerror(errno);  // NOLINT(concurrency-mt-unsafe): start-up
        return Err::kPermission;
    }
    return Err::kOk;
}

}  // namespace

Err check_device(const DeviceSpec& spec, std::uint16_t& mtu, std::string& why) {
    switch (spec.kind) {
        case DeviceKind::kAfPacket:
            return check_interface(spec, mtu, why);
        case DeviceKind::kMemif:
            return check_memif(spec, why);
        case DeviceKind::kPci:
        case DeviceKind::kOther:
            return Err::kOk;
    }
    return Err::kOk;
}

}  // namespace ulc::dpdk
