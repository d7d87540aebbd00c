/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "error.h"
#include "openssl_library.h"

namespace zc::holder {
namespace {

constexpr std::string_view kIdentity = "zc-hold"; /* of the key: there is one */
constexpr unsigned char kAes[] = {0x13, 0x01};    /* TLS_AES_128_GCM_SHA256: RFC 8446, B.4 */
constexpr const char *kAesFirst = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char *kChaChaFirst = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
/* Several records of 16 KiB are read by one call. */
constexpr std::size_t kReadAtOnce = 256 << 10;
constexpr std::size_t kWaiting = 256 << 10; /* bytes to be sent by one call */

bool has_aes()
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
    return (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#else
    return false;
#endif
}

std::string last_reason()
{
    const unsigned long code = ERR_peek_last_error();
    const char *const text = ERR_reason_error_string(code);
    return text ? text : "error " + std::to_string(code);
}

[[noreturn]] void throw_openssl(const char *what)
{
    throw error(EIO, std::string("OpenSSL: ") + what + ": " + last_reason());
}

/* ---- the key ---- */

const tls_context &context_of(SSL *ssl)
{
    return *static_cast<const tls_context *>(SSL_get_app_data(ssl));
}

/** As if a connection before had agreed upon the key: so has OpenSSL what both know beforehand. */
SSL_SESSION *session_of(SSL *ssl)
{
    const auto &key = context_of(ssl).key().bytes();
    SSL_SESSION *const made = SSL_SESSION_new();
    if (made && SSL_SESSION_set1_master_key(made, key.data(), key.size()) == 1 &&
        SSL_SESSION_set_cipher(made, SSL_CIPHER_find(ssl, kAes)) == 1 &&
        SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1)
        return made;
    SSL_SESSION_free(made);
    return nullptr;
}

int offer_key(SSL *ssl, const EVP_MD *, const unsigned char **id, std::size_t *size,
              SSL_SESSION **session)
{
    *session = session_of(ssl);
    *id = reinterpret_cast<const unsigned char *>(kIdentity.data());
    *size = kIdentity.size();
    return *session ? 1 : 0;
}

/** Without a session the handshake fails, as there is no certificate. */
int find_key(SSL *ssl, const unsigned char *id, std::size_t size, SSL_SESSION **session)
{
    const std::string_view named(reinterpret_cast<const char *>(id), size);
    *session = named == kIdentity ? session_of(ssl) : nullptr;
    return 1;
}

/* ---- the socket, as OpenSSL uses it: its own way would raise SIGPIPE, which a holder passes on to
 * its rank ---- */

tls_connection::socket &socket_of(BIO *bio)
{
    return *static_cast<tls_connection::socket *>(BIO_get_data(bio));
}

void send_waiting(tls_connection::socket &to)
{
    while (to.begin < to.end) {
        const ssize_t sent = send(to.fd.fd, to.waiting.get() + to.begin, to.end - to.begin,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            to.error = errno == EAGAIN ? 0 : errno;
            return;
        }
        to.begin += static_cast<std::size_t>(sent);
    }
    to.begin = to.end = 0;
}

int socket_write(BIO *bio, const char *bytes, std::size_t size, std::size_t *written)
{
    tls_connection::socket &to = socket_of(bio);
    BIO_clear_retry_flags(bio);
    if (kWaiting - to.end < size)
        send_waiting(to);
    *written = std::min(size, kWaiting - to.end);
    if (*written == 0) {
        BIO_set_retry_write(bio);
        return 0;
    }
    std::memcpy(to.waiting.get() + to.end, bytes, *written);
    to.end += *written;
    return 1;
}

int socket_read(BIO *bio, char *bytes, std::size_t size, std::size_t *read)
{
    BIO_clear_retry_flags(bio);
    const ssize_t got = recv(socket_of(bio).fd.fd, bytes, size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    if (got == 0)
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    *read = got < 0 ? 0 : static_cast<std::size_t>(got);
    return got > 0 ? 1 : 0;
}

long socket_control(BIO *bio, int command, long, void *)
{
    if (command == BIO_CTRL_EOF)
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD *socket_method()
{
    static const BIO_METHOD *const made = [] {
        BIO_METHOD *const method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "zc-hold socket");
        if (method) {
            BIO_meth_set_write_ex(method, socket_write);
            BIO_meth_set_read_ex(method, socket_read);
            BIO_meth_set_ctrl(method, socket_control);
        }
        return method;
    }();
    return made;
}

} // namespace

/* ---- contexts ---- */

void tls_context::free_context::operator()(SSL_CTX *context) const noexcept
{
    SSL_CTX_free(context);
}

tls_context::tls_context(end which, const tls_key &key)
    : which_(which), key_(key), context_(SSL_CTX_new_ex(openssl_library(), nullptr, TLS_method()))
{
    SSL_CTX *const context = context_.get();
    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, has_aes() ? kAesFirst : kChaChaFirst) != 1 ||
        SSL_CTX_set1_groups_list(context, "X25519:P-256") != 1)
        throw_openssl("TLS 1.3");
    /* Whatever the host's settings are, if another part of this process has read them before. */
    SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_NO_TLSv1_3);
    /* ChaCha20 if one end has it first. No ticket: each connection shows the key. */
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                     SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_quiet_shutdown(context, 1);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, kReadAtOnce);
    if (which == end::CLIENT) {
        /* A server that shows a certificate instead of the key is trusted by nothing. */
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
        SSL_CTX_set_psk_use_session_callback(context, offer_key);
    } else {
        SSL_CTX_set_psk_find_session_callback(context, find_key);
    }
}

/* ---- connections ---- */

void tls_connection::free_ssl::operator()(SSL *ssl) const noexcept
{
    SSL_free(ssl);
}

tls_connection::tls_connection(const tls_context &of, descriptor connected)
    : socket_{std::move(connected), std::make_unique_for_overwrite<char[]>(kWaiting)},
      ssl_(SSL_new(of.get()))
{
    BIO *const bio = ssl_ && socket_method() ? BIO_new(socket_method()) : nullptr;
    if (!bio)
        throw_openssl("a connection");
    BIO_set_data(bio, &socket_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_app_data(ssl_.get(), const_cast<tls_context *>(&of));
    if (of.which() == tls_context::end::CLIENT)
        SSL_set_connect_state(ssl_.get());
    else
        SSL_set_accept_state(ssl_.get());
}

short tls_connection::events() const noexcept
{
    return socket_.begin < socket_.end ? POLLIN | POLLOUT : POLLIN;
}

void tls_connection::close(const std::string &why)
{
    state_ = state::CLOSED;
    why_ = why;
}

/** Whether a call of OpenSSL has done something; if not it has to be made again, or is CLOSED. */
bool tls_connection::goes_on(int result)
{
    const int code = errno;
    if (result > 0)
        return true;
    switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_WRITE:
    case SSL_ERROR_WANT_READ:
        break;
    case SSL_ERROR_ZERO_RETURN:
        close("");
        break;
    case SSL_ERROR_SYSCALL:
        close(code == 0 ? "" : std::strerror(code));
        break;
    default:
        close(ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING
                  ? ""
                  : last_reason());
    }
    return false;
}

void tls_connection::shake_hands()
{
    if (state_ != state::HANDSHAKE)
        return;
    ERR_clear_error();
    errno = 0;
    const bool is_done = goes_on(SSL_do_handshake(ssl_.get()));
    flush(); /* what has to be said of a failure, too */
    if (!is_done || state_ == state::CLOSED)
        return;
    if (SSL_session_reused(ssl_.get()) != 1)
        close("it has not shown the key");
    else
        state_ = state::OPEN;
}

std::size_t tls_connection::read(char *to, std::size_t size)
{
    if (state_ != state::OPEN)
        return 0;
    ERR_clear_error();
    errno = 0;
    std::size_t got = 0;
    return goes_on(SSL_read_ex(ssl_.get(), to, size, &got)) ? got : 0;
}

std::size_t tls_connection::write(std::string_view bytes)
{
    if (state_ != state::OPEN || bytes.empty())
        return 0;
    ERR_clear_error();
    errno = 0;
    std::size_t sent = 0;
    return goes_on(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent)) ? sent : 0;
}

void tls_connection::flush()
{
    send_waiting(socket_);
    if (socket_.error != 0 && state_ != state::CLOSED)
        close(std::strerror(socket_.error));
}

bool tls_connection::renew_key()
{
    return state_ == state::OPEN && SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1;
}

} // namespace zc::holder
