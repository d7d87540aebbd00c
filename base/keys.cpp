/* SPDX-License-Identifier: BSD-3-Clause */
#include "keys.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <zmq.h>

#include "descriptor.h"

namespace zc {
namespace {

constexpr std::size_t kZ85 = 40;

[[noreturn]] void fail(const std::string &path, const std::string &what)
{
    throw key_error(fmt::format("{}: {}", path, what));
}

} // namespace

std::string default_key_file()
{
    const char *home = std::getenv("HOME");
    return std::string(home == nullptr ? "" : home) + "/.config/zc/zcmd.key";
}

key_pair make_keys()
{
    std::array<char, kZ85 + 1> public_key{};
    std::array<char, kZ85 + 1> secret_key{};
    if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
        throw key_error(
            fmt::format("this ZeroMQ makes no CURVE keys: {}", zmq_strerror(zmq_errno())));
    return {public_key.data(), secret_key.data()};
}

void write_keys(const std::string &path, const key_pair &keys)
{
    std::error_code ignored;
    std::filesystem::path parent = std::filesystem::path(path).parent_path();
    if (!parent.empty() && std::filesystem::create_directories(parent, ignored))
        std::filesystem::permissions(parent, std::filesystem::perms::owner_all, ignored);
    descriptor file{open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (file.fd < 0)
        fail(path, errno == EEXIST
                       ? "is there already; a new pair would shut out every agent that has it"
                       : std::strerror(errno));
    std::string text = fmt::format(
        "# Key pair of the agents of one user. A process that can read it is one of them.\n"
        "public = \"{}\"\nsecret = \"{}\"\n",
        keys.public_key, keys.secret_key);
    if (write(file.fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        fsync(file.fd) != 0) {
        int code = errno;
        unlink(path.c_str());
        fail(path, std::strerror(code));
    }
}

key_pair read_keys(const std::string &path)
{
    descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.fd < 0)
        fail(path, fmt::format("{} (zcmd keygen makes it)", std::strerror(errno)));
    struct stat s;
    if (fstat(file.fd, &s) != 0)
        fail(path, std::strerror(errno));
    if (s.st_uid != geteuid())
        fail(path, "belongs to another user");
    if ((s.st_mode & 077) != 0)
        fail(path, fmt::format("mode {:04o}: others may read or change it; wants 0600",
                               s.st_mode & 07777));
    std::array<char, 1024> buffer{};
    ssize_t got = read(file.fd, buffer.data(), buffer.size() - 1);
    std::istringstream text(
        std::string(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0));
    key_pair keys;
    std::string line;
    while (std::getline(text, line)) {
        for (auto [name, key] :
             {std::pair{"public", &keys.public_key}, std::pair{"secret", &keys.secret_key}}) {
            if (line.starts_with(name)) {
                auto first = line.find('"');
                auto last = line.rfind('"');
                if (first != std::string::npos && last > first)
                    *key = line.substr(first + 1, last - first - 1);
            }
        }
    }
    std::array<std::uint8_t, 32> raw{};
    if (keys.public_key.size() != kZ85 || keys.secret_key.size() != kZ85 ||
        zmq_z85_decode(raw.data(), keys.public_key.c_str()) == nullptr ||
        zmq_z85_decode(raw.data(), keys.secret_key.c_str()) == nullptr)
        fail(path, "is not a key pair of zcmd keygen");
    std::array<char, kZ85 + 1> derived{};
    if (zmq_curve_public(derived.data(), keys.secret_key.c_str()) != 0 ||
        keys.public_key != derived.data())
        fail(path, "its public key is not that of its secret key");
    return keys;
}

} // namespace zc
