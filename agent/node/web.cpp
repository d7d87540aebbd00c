/* SPDX-License-Identifier: BSD-3-Clause */
#include "web.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>

namespace zc::agent {
namespace {

constexpr unsigned kMostReaders = 32;
constexpr unsigned kPatience = 10; /* seconds */

MHD_Result reply(MHD_Connection *connection, unsigned status, const std::string &text,
                 const char *type)
{
    MHD_Response *response = MHD_create_response_from_buffer(
        text.size(), const_cast<char *>(text.data()), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_Result done = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return done;
}

MHD_Result answer(web &site, bool metrics_only, MHD_Connection *connection, const char *url,
                  const char *method)
{
    std::string path = url;
    std::string text;
    if (std::strcmp(method, "GET") == 0 && site.page(path, metrics_only, text))
        return reply(connection, MHD_HTTP_OK, text,
                     path == "/metrics" ? "text/plain; version=0.0.4" : "application/json");
    if (std::strcmp(method, "POST") == 0 && !metrics_only && site.command(path))
        return reply(connection, MHD_HTTP_ACCEPTED, "{\"ok\":true}\n", "application/json");
    return reply(connection, MHD_HTTP_NOT_FOUND, "{\"error\":\"no such page\"}\n",
                 "application/json");
}

/* POSTs carry no body; the second call, which would bring it, is the one to answer. */
template <bool kMetricsOnly>
MHD_Result handle(void *site, MHD_Connection *connection, const char *url, const char *method,
                  const char *, const char *, std::size_t *upload_size, void **state)
{
    static char seen;
    if (*state == nullptr) {
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_size != 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    try {
        return answer(*static_cast<web *>(site), kMetricsOnly, connection, url, method);
    } catch (const std::exception &) {
        return MHD_NO; /* out of memory: this reader goes without */
    }
}

int listen_at(const std::string &path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string own = path + "." + std::to_string(getpid());
    if (own.size() >= sizeof address.sun_path)
        throw std::runtime_error(path + ": too long for a socket");
    own.copy(address.sun_path, own.size());
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(own.c_str());
    /* Private before it has its name. */
    if (s < 0 || fchmod(s, 0600) != 0 ||
        bind(s, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 ||
        chmod(own.c_str(), 0600) != 0 || listen(s, 16) != 0 ||
        rename(own.c_str(), path.c_str()) != 0) {
        int code = errno;
        unlink(own.c_str());
        if (s >= 0)
            close(s);
        throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(code)));
    }
    return s;
}

} // namespace

web::web(const std::string &socket_path, int loopback_port,
         std::function<void(const std::string &)> command)
    : path_(socket_path), command_(std::move(command))
{
    constexpr unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD;
    int s = listen_at(path_);
    local_ =
        MHD_start_daemon(flags, 0, nullptr, nullptr, &handle<false>, this, MHD_OPTION_LISTEN_SOCKET,
                         s, MHD_OPTION_CONNECTION_LIMIT, kMostReaders,
                         MHD_OPTION_CONNECTION_TIMEOUT, kPatience, MHD_OPTION_END);
    if (local_ == nullptr) {
        close(s);
        throw std::runtime_error(path_ + ": no HTTP server");
    }
    if (loopback_port == 0)
        return;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(loopback_port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    loopback_ =
        MHD_start_daemon(flags, 0, nullptr, nullptr, &handle<true>, this, MHD_OPTION_SOCK_ADDR,
                         &address, MHD_OPTION_CONNECTION_LIMIT, kMostReaders,
                         MHD_OPTION_CONNECTION_TIMEOUT, kPatience, MHD_OPTION_END);
    if (loopback_ == nullptr) {
        int code = errno;
        MHD_stop_daemon(local_);
        throw std::runtime_error(
            fmt::format("127.0.0.1:{}: {}", loopback_port, std::strerror(code)));
    }
}

web::~web()
{
    if (loopback_ != nullptr)
        MHD_stop_daemon(loopback_);
    MHD_stop_daemon(local_);
    unlink(path_.c_str());
}

void web::publish(std::map<std::string, std::string> pages)
{
    std::lock_guard lock(mutex_);
    pages_ = std::move(pages);
}

bool web::page(const std::string &path, bool metrics_only, std::string &out)
{
    if (metrics_only && path != "/metrics")
        return false;
    std::lock_guard lock(mutex_);
    auto at = pages_.find(path);
    if (at == pages_.end())
        return false;
    out = at->second;
    return true;
}

bool web::command(const std::string &path)
{
    for (const char *known : {"/drain", "/resume", "/leave"}) {
        if (path == known) {
            command_(path.substr(1));
            return true;
        }
    }
    return false;
}

} // namespace zc::agent
