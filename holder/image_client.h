/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_IMAGE_CLIENT_H_INCLUDED
#define ZC_HOLDER_IMAGE_CLIENT_H_INCLUDED

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <netinet/in.h>

#include "address_lookup.h"
#include "loop.h"
#include "stream.h"
#include "tls_connection.h"

namespace zc::holder {

/** How images travel: what has another way is of another build. */
inline constexpr const char *kImageWay = "tls 1";

/** Of one connection for an image, what its two ends say when it is OPEN (tls_connection.h). All
 * that the server says are offsets in the stream, each 8 bytes, big endian:
 *
 *     client                                     server (image_server.h)
 *       ◀── the first byte that has not come ──────
 *       ─── bytes, from there on ─────────────────▶
 *       ◀── what is below has been used ───────────   again and again, at least each kSign
 */
struct image_protocol {
    using clock = std::chrono::steady_clock;
    static constexpr std::size_t kOffset = 8;
    static constexpr std::chrono::milliseconds kSign{500};
    /** Without a sign the connection is made anew. */
    static constexpr std::chrono::milliseconds kNoSign{4000};
};

/**
 * The sender of an image: it has what is to be sent, and a connection with the other host, which it
 * makes anew as often as it breaks: its owner's patience ends that. One thread; nothing waits.
 *
 *   PAUSE ─▶ LOOKUP ─▶ CONNECTING ─▶ HANDSHAKE ─▶ RESUMING ── the first offset ──▶ SENDING
 *     ▲                    │             │            │                              │
 *     └── it has failed, or takes too long, or the other says what cannot be ────────┘
 */
class image_client {
  public:
    enum class state { PAUSE, LOOKUP, CONNECTING, HANDSHAKE, RESUMING, SENDING };
    static constexpr std::size_t kWindow = 16 << 20;

    /** @endpoint: tcp://HOST:PORT. Throws error. */
    image_client(loop &events, const std::string &endpoint, const tls_key &key);
    ~image_client();
    image_client(const image_client &) = delete;
    image_client &operator=(const image_client &) = delete;

    outgoing &out() { return out_; }
    /** Sends what can be sent, and hears what has been used. */
    void pump();
    /** Of the other no sign for so long. */
    std::chrono::milliseconds silence() const;
    /** Why there is no connection, as far as it is known. */
    const std::string &why() const noexcept { return why_; }
    state now() const noexcept { return state_; }

  private:
    using clock = image_protocol::clock;
    void enter(state next);
    void begin();
    void connect();
    void finish_connecting();
    void hear();
    bool heard(std::uint64_t offset);
    void send();
    void fail(const std::string &why);
    void watch();

    loop &loop_;
    std::string host_;
    std::uint16_t port_ = 0;
    tls_context context_;
    outgoing out_{stream_id::image, kWindow};
    state state_ = state::PAUSE;
    clock::time_point since_; /* when it has entered the state, or had a sign in it */
    clock::time_point heard_;
    std::chrono::milliseconds pause_{0};
    std::string why_;
    std::optional<address_lookup> lookup_;
    std::vector<sockaddr_in> addresses_;
    std::size_t attempt_ = 0;
    descriptor socket_; /* CONNECTING; then it is the connection's */
    std::optional<tls_connection> connection_;
    int watched_ = -1;
    short events_ = 0;
    std::array<unsigned char, image_protocol::kOffset> offset_{};
    std::size_t offset_bytes_ = 0;  /* of it, that have come */
    std::uint64_t of_this_key_ = 0; /* bytes sent */
};

} // namespace zc::holder

#endif
