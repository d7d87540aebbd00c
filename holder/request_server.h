/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_REQUEST_SERVER_H_INCLUDED
#define ZC_HOLDER_REQUEST_SERVER_H_INCLUDED

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "descriptor.h"
#include "loop.h"

namespace zc::holder {

/** Requests to one zc-hold, by a Unix socket of mode 0600: a line of JSON each, and one as the
 * answer. */
class request_server {
  public:
    /** The caller answers at once or later: answer(client, ...). */
    using handler = std::function<void(int client, const nlohmann::json &request)>;
    /** Throws error if the socket cannot be made. */
    request_server(loop &events, std::string path, handler then);
    ~request_server();
    request_server(const request_server &) = delete;
    request_server &operator=(const request_server &) = delete;
    /** It may have gone. */
    void answer(int client, const nlohmann::json &what);

  private:
    void accept();
    void read(int client);
    void close(int client);
    loop &loop_;
    std::string path_;
    handler then_;
    descriptor socket_;
    std::map<int, std::string> clients_; /* what has come of a line */
};

enum class received { part, line, end };

/**
 * Adds what has come over @fd to @text; waits for nothing. line: a whole one is there. end: the
 * other side has closed the connection, or sends no line of a sensible length.
 */
received receive_line(int fd, std::string &text);

/** Where the processes of this user have such sockets, on this host: made if need be. Empty:
 * nowhere. */
std::string request_directory();

/** The sockets in all places where there may be some. */
std::vector<std::string> request_sockets();

/** That of the zc-hold of this process number; empty if there is none. */
std::string request_socket_of(int pid);

/** The connection over which the answer comes, a line; waits for nothing. Throws error. */
descriptor send_request(const std::string &path, const nlohmann::json &what);

/** The answer; throws error if there is none. @seconds: to wait for it, unless it is @over. */
nlohmann::json request(const std::string &path, const nlohmann::json &what, int seconds,
                       const std::function<bool()> &over = {});

} // namespace zc::holder

#endif
