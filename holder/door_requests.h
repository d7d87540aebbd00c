/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_DOOR_REQUESTS_H_INCLUDED
#define ZC_HOLDER_DOOR_REQUESTS_H_INCLUDED

#include <functional>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "descriptor.h"
#include "line.h"
#include "loop.h"

namespace zc::holder {

/** Requests to the zc-hold of ranks that were started on this host, by their sockets
 * (request_server.h): any number at once, and none of them is waited for. */
class door_requests {
  public:
    /** @said: the answer, or a line before it (request_server.h); null if the process ends, or
     * gives no answer in time. */
    using handler = std::function<void(const nlohmann::json &said)>;
    explicit door_requests(loop &events) : loop_(events) {}
    ~door_requests();
    door_requests(const door_requests &) = delete;
    door_requests &operator=(const door_requests &) = delete;

    /** Calls @then until there is an answer, at once if nothing listens at @path. Return: by what
     * it is known until then, or -1. */
    int ask(const std::string &path, const nlohmann::json &what, clock::duration patience,
            handler then);
    /** Another line to one that has not answered. */
    void tell(int which, const nlohmann::json &what);
    /** Gives up what has taken too long. */
    void tick(clock::time_point now);
    bool waits() const { return !open_.empty(); }

  private:
    struct waiting {
        descriptor socket;
        handler then;
        clock::time_point until;
        std::string text;
    };
    void read(int fd);
    void end(int fd, const nlohmann::json &said);
    loop &loop_;
    std::map<int, waiting> open_;
};

} // namespace zc::holder

#endif
