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
 * answer. Before that lines may go either way, those of the zc-hold with "said". */
class request_server {
  public:
    /** The caller answers at once or later: answer(client, ...). */
    using handler = std::function<void(int client, const nlohmann::json &request)>;
    /** @gone: it has not been answered, and waits no longer. Throws error if the socket cannot be
     * made. */
    request_server(loop &events, std::string path, handler then,
                   std::function<void(int client)> gone);
    ~request_server();
    request_server(const request_server &) = delete;
    request_server &operator=(const request_server &) = delete;
    /** Either may be to one that has gone. */
    void answer(int client, const nlohmann::json &what);
    void say(int client, const nlohmann::json &what);

  private:
    void accept();
    void read(int client);
    void close(int client);
    loop &loop_;
    std::string path_;
    handler then_;
    std::function<void(int client)> gone_;
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

/** Another line over that connection. If it has ended, that is noticed where it is read. */
void tell_door(int fd, const nlohmann::json &what);

/** Whether @said is the answer, and not a line before it. */
bool is_answer(const nlohmann::json &said);

/** The answer; throws error if there is none. @seconds: to wait for it. */
nlohmann::json request(const std::string &path, const nlohmann::json &what, int seconds);

} // namespace zc::holder

#endif
