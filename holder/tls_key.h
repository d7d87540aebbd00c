/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_TLS_KEY_H_INCLUDED
#define ZC_HOLDER_TLS_KEY_H_INCLUDED

#include <array>
#include <string>

namespace zc::holder {

/** A pre-shared key of TLS 1.3: who has it may connect, and nobody else. It is drawn for one
 * arrival of a rank, goes where CURVE protects it, and is in no log, record, answer or command
 * line. */
class tls_key {
  public:
    static constexpr std::size_t kBytes = 32;
    /** A new one. Throws error. */
    static tls_key draw();
    /** The key of which text() is @text. Throws error if there is none. */
    static tls_key of(const std::string &text);
    ~tls_key();
    tls_key(const tls_key &) = default;
    tls_key &operator=(const tls_key &) = default;
    std::string text() const;
    const std::array<unsigned char, kBytes> &bytes() const noexcept { return bytes_; }

  private:
    tls_key() = default;
    std::array<unsigned char, kBytes> bytes_{};
};

} // namespace zc::holder

#endif
