/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_TLS_CONNECTION_H_INCLUDED
#define ZC_HOLDER_TLS_CONNECTION_H_INCLUDED

#include <memory>
#include <string>
#include <string_view>

#include <openssl/types.h>

#include "descriptor.h"
#include "tls_key.h"

namespace zc::holder {

/**
 * One end of connections that both ends prove to have a key for: TLS 1.3 (RFC 8446) of OpenSSL,
 * with a pre-shared key and an exchange of Diffie and Hellman, so that who learns the key later
 * reads nothing. No certificates. The cipher is AES-128-GCM, or ChaCha20-Poly1305 if one of the two
 * processors has no instructions for AES.
 */
class tls_context {
  public:
    enum class end { CLIENT, SERVER };
    /** Throws error. */
    tls_context(end which, const tls_key &key);
    SSL_CTX *get() const noexcept { return context_.get(); }
    end which() const noexcept { return which_; }
    const tls_key &key() const noexcept { return key_; }

  private:
    struct free_context {
        void operator()(SSL_CTX *context) const noexcept;
    };
    end which_;
    tls_key key_;
    std::unique_ptr<SSL_CTX, free_context> context_;
};

/**
 * One connection. Nothing waits: what cannot be done now is to be tried again when the socket has
 * one of events().
 *
 *   HANDSHAKE ── both have shown the key ──▶ OPEN
 *       └── no TLS, no key, or the end ──────┴──▶ CLOSED
 */
class tls_connection {
  public:
    enum class state { HANDSHAKE, OPEN, CLOSED };
    /** Records wait here until there are many: each call of send(2) costs as much as encrypting
     * some 16 KiB, since the kernel wakes the other end up, and sets a timer where it paces. */
    struct socket {
        descriptor fd;
        std::unique_ptr<char[]> waiting;
        std::size_t begin = 0, end = 0; /* of what waits */
        int error = 0;                  /* of send(2): an errno */
    };
    /** @connected does not block. @of outlives this. Throws error. */
    tls_connection(const tls_context &of, descriptor connected);
    tls_connection(const tls_connection &) = delete;
    tls_connection &operator=(const tls_connection &) = delete;

    int fd() const noexcept { return socket_.fd.fd; }
    state now() const noexcept { return state_; }
    /** Of poll(2). */
    short events() const noexcept;
    void shake_hands();
    /** How many bytes have come into @to, of @size at most; 0: none now, or it is CLOSED. Only
     * after 0 does poll(2) tell of more: the socket's may have been read already. */
    std::size_t read(char *to, std::size_t size);
    /** How many of @bytes are taken: a record at most; they are sent by flush(), or before. If they
     * are not all, the rest has to be given next, and more may follow it then. */
    std::size_t write(std::string_view bytes);
    void flush();
    /** Bytes are sent with a new key from now on. False: they are not, as it is not OPEN. */
    bool renew_key();
    /** It is CLOSED, since; empty: the other end has closed it. */
    const std::string &why() const noexcept { return why_; }

  private:
    struct free_ssl {
        void operator()(SSL *ssl) const noexcept;
    };
    bool goes_on(int result);
    void close(const std::string &why);
    socket socket_;
    std::unique_ptr<SSL, free_ssl> ssl_;
    state state_ = state::HANDSHAKE;
    std::string why_;
};

} // namespace zc::holder

#endif
