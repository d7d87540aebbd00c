/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_ENDS_H_INCLUDED
#define ZC_HOLDER_ENDS_H_INCLUDED

#include <list>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "descriptor.h"
#include "loop.h"
#include "stream.h"

namespace zc::holder {

/** A pipe or socket that the rank has one half of, which CRIU replaces by another on the next host.
 */
struct end {
    stream_id stream = stream_id::control; /* control: orders to the rank */
    bool is_socket = false;
    bool is_read = false, is_written = false; /* by the rank */
    ino_t inode = 0;                          /* of the rank's half */
    int flags = 0;                            /* O_NONBLOCK and such, of that half */
    /* As CRIU's --inherit-fd names it. */
    std::string name() const;
};

/** What the rank found as standard stream or PMI's socket, as far as it is a pipe or a Unix socket.
 */
std::optional<end> end_at(int fd, stream_id stream);

/** The half that the rank @pid has of @of, taken from it: nothing, if it has closed it. */
descriptor taken_from(pid_t pid, const end &of);

/** What the rank has not read yet, and keeps. */
std::string peek(int fd, const end &of);

nlohmann::json to_json(const end &what, const std::string &unread);

/** A half of each for a rank that comes, and the other for its holder. */
struct new_end {
    end what;
    descriptor ours, theirs;
    explicit new_end(const nlohmann::json &before);
};

/**
 * Copies between descriptors and the streams of a rank: what is read goes to the stream as long as
 * it has room, what the stream brings is written as fast as it is taken. Where nothing reads any
 * more, what comes is dropped, and noted.
 */
class relay {
  public:
    relay(loop &events, class rank_streams &streams) : loop_(events), streams_(streams) {}
    ~relay() { stop(); }
    relay(const relay &) = delete;
    relay &operator=(const relay &) = delete;

    /** @reads, @writes: this side does. It owns @fd. */
    void add(descriptor fd, const end &what, bool reads, bool writes);
    /** Waits for what can be read or written now; after each change of the streams. */
    void update();
    /** Nothing passes until resume(). */
    void stop();
    void resume() { stopped_ = false; }
    /** All that is there is read, whatever the room: of a rank that has stopped, or ended. */
    void drain();
    /** Streams whose reader is gone, once each. */
    std::vector<stream_id> take_broken();
    /** The other side cannot write any more: this side reads no more, and closes. */
    void close_reading(stream_id which);

  private:
    struct half {
        descriptor fd;
        end what;
        bool reads, writes;
        bool broken = false;
        bool drops = false; /* what comes after the end */
    };
    /** False: nothing is there now, or the end. */
    bool read_some(half &of);
    void write_some(half &of);
    static void drop(incoming &from);
    loop &loop_;
    class rank_streams &streams_;
    std::list<half> halves_; /* the loop knows them by address */
    std::vector<stream_id> broken_;
    bool stopped_ = false;
};

} // namespace zc::holder

#endif
