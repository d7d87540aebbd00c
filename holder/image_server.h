/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_IMAGE_SERVER_H_INCLUDED
#define ZC_HOLDER_IMAGE_SERVER_H_INCLUDED

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "image_client.h"
#include "loop.h"
#include "stream.h"
#include "tls_connection.h"

namespace zc::holder {

/**
 * The receiver of an image: it listens, and takes bytes of the last connection that has shown the
 * key. What connects is a guest until it has: guests are few, have kGuestPatience, and are no
 * trouble to the connection that there is. One thread; nothing waits.
 *
 *   a guest ── shows the key ──▶ the connection ── it ends, or another shows the key ──▶ closed
 *      └── rubbish, another key, nothing for kGuestPatience, or kMostGuests newer ones ──▶ refused
 */
class image_server {
  public:
    static constexpr std::size_t kMostGuests = 64;
    static constexpr std::chrono::milliseconds kGuestPatience{4000};

    /** At any port of @address, in figures. Throws error. */
    image_server(loop &events, const std::string &address, const tls_key &key);
    ~image_server();
    image_server(const image_server &) = delete;
    image_server &operator=(const image_server &) = delete;

    /** tcp://ADDRESS:PORT */
    const std::string &endpoint() const noexcept { return endpoint_; }
    incoming &in() { return in_; }
    /** Takes what has come, or a part of it. */
    void pump();
    /** Says at once what of it has been used, if that is worth it: the sender waits when its window
     * is full. */
    void acknowledge();
    /** There may be more to take at once. */
    bool has_more() const noexcept { return has_more_; }
    /** Connections that have not shown the key. */
    std::uint64_t refused() const noexcept { return refused_; }

  private:
    using clock = image_protocol::clock;
    struct guest {
        clock::time_point came;
        std::unique_ptr<tls_connection> connection;
        std::string from;
    };
    void accept();
    void receive_guests();
    void refuse(const guest &one, const std::string &why);
    void adopt(std::unique_ptr<tls_connection> one);
    void drop();
    void receive();
    void tell(std::uint64_t offset);
    void flush();

    loop &loop_;
    tls_context context_;
    descriptor listening_;
    std::string endpoint_;
    incoming in_{stream_id::image};
    std::list<guest> guests_; /* the oldest first */
    std::unique_ptr<tls_connection> connection_;
    bool has_more_ = false;
    std::optional<clock::time_point> listen_at_; /* again, when there may be descriptors */
    std::string said_;                           /* and not sent yet */
    std::uint64_t told_ = 0;                     /* what has been used */
    clock::time_point sign_;
    std::uint64_t refused_ = 0;
};

} // namespace zc::holder

#endif
