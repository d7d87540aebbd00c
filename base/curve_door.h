/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_CURVE_DOOR_H_INCLUDED
#define ZC_BASE_CURVE_DOOR_H_INCLUDED

#include <cstdint>
#include <string>
#include <vector>

namespace zc {

/** All parts of a message of ZeroMQ that is there; empty if there is none. */
std::vector<std::string> receive_parts(void *socket);

/**
 * Decides which processes may connect to the CURVE servers of a context: those with our own public
 * key. All others are refused during the handshake, before a byte of theirs arrives (ZeroMQ RFC
 * 27). It must be there before any socket listens. One thread.
 */
class curve_door {
  public:
    /** @context: ZeroMQ's. @public_key: as text. Throws error. */
    curve_door(void *context, const std::string &public_key);
    ~curve_door();
    curve_door(const curve_door &) = delete;
    curve_door &operator=(const curve_door &) = delete;

    /** To be polled; answer() when there is something. */
    void *socket() const { return socket_; }
    void answer();
    /** Refused. */
    std::uint64_t strangers() const { return strangers_; }

  private:
    void *socket_ = nullptr;
    std::string public_raw_;
    std::uint64_t strangers_ = 0;
};

} // namespace zc

#endif
