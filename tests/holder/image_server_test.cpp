/* SPDX-License-Identifier: BSD-3-Clause */
#include "image_server.h"

#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <malloc.h>
#include <random>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "error.h"
#include "image_client.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr const char *kHere = "127.0.0.1";

std::string random_bytes(std::size_t size)
{
    std::mt19937_64 random(size);
    std::string made(size, '\0');
    for (char &byte : made)
        byte = static_cast<char>(random());
    return made;
}

sockaddr_in place_of(const std::string &endpoint)
{
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
    inet_pton(AF_INET, kHere, &made.sin_addr);
    return made;
}

descriptor connected_to(const std::string &endpoint)
{
    descriptor made{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const sockaddr_in at = place_of(endpoint);
    EXPECT_EQ(connect(made.fd, reinterpret_cast<const sockaddr *>(&at), sizeof at), 0);
    fcntl(made.fd, F_SETFL, O_NONBLOCK);
    return made;
}

/** The other end has closed it. */
bool has_ended(const descriptor &socket)
{
    char byte[4096];
    ssize_t got;
    while ((got = recv(socket.fd, byte, sizeof byte, MSG_DONTWAIT)) > 0)
        continue;
    return got == 0 || errno == ECONNRESET;
}

/** A socket that listens here, and @endpoint, where. */
descriptor listening_at(std::string &endpoint)
{
    descriptor made{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    sockaddr_in at = place_of("tcp://0:0");
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(made.fd, reinterpret_cast<sockaddr *>(&at), size), 0);
    EXPECT_EQ(listen(made.fd, 8), 0);
    getsockname(made.fd, reinterpret_cast<sockaddr *>(&at), &size);
    endpoint = std::string("tcp://") + kHere + ":" + std::to_string(ntohs(at.sin_port));
    return made;
}

/** A way between the two that can be cut, or lets nothing through for a while. */
class proxy {
  public:
    explicit proxy(const std::string &to) : to_(to), listening_(listening_at(endpoint_)) {}
    const std::string &endpoint() const { return endpoint_; }
    void turn()
    {
        if (descriptor came{accept4(listening_.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
            came.fd >= 0) {
            client_ = std::move(came);
            server_ = connected_to(to_);
            made++;
        }
        if (client_.fd < 0)
            return;
        if (!is_dead) {
            pass(client_, server_, forth_);
            pass(server_, client_, back_);
        }
    }
    void cut()
    {
        client_ = descriptor{};
        server_ = descriptor{};
        forth_.clear();
        back_.clear();
    }
    bool is_dead = false; /* nothing passes, as when a cable is pulled */
    unsigned made = 0;    /* connections */
    std::size_t passed = 0;

  private:
    void pass(const descriptor &from, const descriptor &to, std::string &waits)
    {
        std::vector<char> some(64 << 10);
        if (waits.empty()) {
            const ssize_t got = recv(from.fd, some.data(), some.size(), 0);
            if (got == 0)
                shutdown(to.fd, SHUT_WR);
            if (got > 0)
                waits.assign(some.data(), static_cast<std::size_t>(got));
        }
        const ssize_t sent = send(to.fd, waits.data(), waits.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            passed += static_cast<std::size_t>(sent);
            waits.erase(0, static_cast<std::size_t>(sent));
        }
    }
    std::string to_, endpoint_, forth_, back_;
    descriptor listening_, client_, server_;
};

class ImageServerTest : public ::testing::Test {
  protected:
    /** Others look at all memory of what this process forks. */
    static void TearDownTestSuite() { malloc_trim(0); }
    /** Until @enough, with all that has come used, or some of it. */
    bool run(const std::function<bool()> &enough, clock::duration longest = 60s)
    {
        const auto until = clock::now() + longest;
        while (!enough()) {
            if (clock::now() > until)
                return false;
            events.turn(server.has_more() ? 0 : 1);
            if (way)
                way->turn();
            if (client)
                client->pump();
            server.pump();
            const std::size_t part = std::min(use_at_once, server.in().bytes().size());
            got += server.in().bytes().substr(0, part);
            server.in().use(part);
            server.acknowledge();
        }
        return true;
    }
    void connect(const std::string &to)
    {
        client = std::make_unique<image_client>(events, to, key);
    }
    void connect() { connect(server.endpoint()); }
    /** Pushes all of @bytes as it has room, until they have been used. */
    bool sends(
        const std::string &bytes, const std::function<void()> &each = [] {})
    {
        std::size_t at = 0;
        return run([&] {
            while (at < bytes.size() && client->out().room() >= outgoing::kLongest) {
                client->out().push(std::string_view(bytes).substr(at, 100'000));
                at = std::min(at + 100'000, bytes.size());
            }
            each();
            return at == bytes.size() && client->out().is_done();
        });
    }
    loop events;
    const tls_key key = tls_key::draw();
    image_server server{events, kHere, key};
    std::unique_ptr<proxy> way;
    std::unique_ptr<image_client> client;
    std::string got;
    std::size_t use_at_once = ~std::size_t{0};
};

TEST_F(ImageServerTest, TakesAllOnceAndInOrder)
{
    connect();
    const std::string bytes = random_bytes(30'000'001);
    ASSERT_TRUE(sends(bytes)) << client->why();
    EXPECT_TRUE(got == bytes);
    EXPECT_EQ(server.refused(), 0u);
}

TEST_F(ImageServerTest, ConnectsByName)
{
    connect("tcp://localhost" + server.endpoint().substr(server.endpoint().rfind(':')));
    ASSERT_TRUE(sends("bytes")) << client->why();
    EXPECT_EQ(got, "bytes");
}

TEST_F(ImageServerTest, GoesOnWhereAConnectionBreaks)
{
    way = std::make_unique<proxy>(server.endpoint());
    connect(way->endpoint());
    const std::string bytes = random_bytes(40'000'000);
    std::size_t cut_at = 3'000'000;
    ASSERT_TRUE(sends(bytes, [&] {
        if (way->passed > cut_at) {
            way->cut();
            cut_at += 11'000'000;
        }
    })) << client->why();
    EXPECT_TRUE(got == bytes);
    EXPECT_GE(way->made, 4u);
    EXPECT_EQ(server.refused(), 0u);
}

TEST_F(ImageServerTest, MakesAConnectionAnewThatGivesNoSign)
{
    way = std::make_unique<proxy>(server.endpoint());
    connect(way->endpoint());
    const std::string bytes = random_bytes(5'000'000);
    ASSERT_TRUE(sends(bytes, [&] { way->is_dead = way->made == 1 && way->passed > 1'000'000; }))
        << client->why();
    EXPECT_TRUE(got == bytes);
    EXPECT_EQ(way->made, 2u);
}

TEST_F(ImageServerTest, CountsTheTimeWithoutASign)
{
    connect();
    ASSERT_TRUE(sends("bytes"));
    ASSERT_FALSE(run([] { return false; }, 700ms));
    EXPECT_LT(client->silence(), 700ms) << "there are signs although nothing is sent";
    const auto since = clock::now();
    while (clock::now() - since < 300ms) /* the other is stopped */
        client->pump();
    EXPECT_GE(client->silence(), 250ms);
}

TEST_F(ImageServerTest, KeepsAWindow)
{
    connect();
    use_at_once = 0;
    std::size_t pushed = 0;
    const std::string part = random_bytes(outgoing::kLongest);
    run(
        [&] {
            for (; client->out().room() >= part.size(); pushed += part.size())
                client->out().push(part);
            return false;
        },
        500ms);
    EXPECT_EQ(pushed, image_client::kWindow);
    EXPECT_LE(server.in().bytes().size(), std::size_t{3} << 20) << "the rest waits in the socket";
    use_at_once = 1000;
    ASSERT_FALSE(run([] { return false; }, 50ms));
    use_at_once = ~std::size_t{0};
    ASSERT_TRUE(run([&] { return client->out().is_done(); }));
    EXPECT_EQ(got.size(), pushed);
}

/** Its owner, which has all that it waits for, only pumps it then. */
TEST_F(ImageServerTest, SaysAtOnceThatTheLastBytesHaveBeenUsed)
{
    connect();
    ASSERT_TRUE(sends("first"));
    for (int round = 0; round < 5; round++) {
        client->out().push(random_bytes(outgoing::kLongest - 1000));
        while (!client->out().unsent().empty() || server.has_more() ||
               server.in().bytes().empty()) {
            events.turn(1);
            client->pump();
            server.pump();
        }
        server.in().use(server.in().bytes().size());
        const auto since = clock::now();
        while (!client->out().is_done() && clock::now() - since < 2s) {
            events.turn(1);
            server.pump();
            client->pump();
        }
        EXPECT_LT(clock::now() - since, 200ms);
        while (clock::now() - since < 150ms) { /* not just when it gives a sign in any case */
            events.turn(1);
            server.pump();
            client->pump();
        }
    }
}

TEST_F(ImageServerTest, RefusesAnotherKey)
{
    image_client stranger(events, server.endpoint(), tls_key::draw());
    ASSERT_TRUE(run([&] {
        stranger.pump();
        return server.refused() > 0 && !stranger.why().empty();
    }));
    stranger.out().push("not for you");
    ASSERT_FALSE(run(
        [&] {
            stranger.pump();
            return stranger.now() == image_client::state::SENDING;
        },
        300ms));
    connect();
    ASSERT_TRUE(sends("bytes"));
    EXPECT_EQ(got, "bytes");
    EXPECT_FALSE(stranger.out().is_done());
}

/** Who has not the key cannot take an image, either. */
TEST_F(ImageServerTest, IsNotSentToAnotherKey)
{
    image_server stranger(events, kHere, tls_key::draw());
    connect(stranger.endpoint());
    client->out().push("not for you");
    ASSERT_TRUE(run([&] {
        stranger.pump();
        return stranger.refused() > 1;
    }));
    EXPECT_TRUE(stranger.in().bytes().empty());
    EXPECT_FALSE(client->why().empty());
}

/** A server of TLS that has a certificate, and no key. */
class certified {
  public:
    certified() : context_(SSL_CTX_new(TLS_server_method()))
    {
        EVP_PKEY *const key = EVP_EC_gen("P-256");
        X509 *const made = X509_new();
        X509_gmtime_adj(X509_getm_notBefore(made), -60);
        X509_gmtime_adj(X509_getm_notAfter(made), 3600);
        X509_set_pubkey(made, key);
        X509_sign(made, key, EVP_sha256());
        EXPECT_EQ(SSL_CTX_use_certificate(context_, made), 1);
        EXPECT_EQ(SSL_CTX_use_PrivateKey(context_, key), 1);
        X509_free(made);
        EVP_PKEY_free(key);
    }
    ~certified()
    {
        SSL_free(ssl_);
        SSL_CTX_free(context_);
    }
    certified(const certified &) = delete;
    certified &operator=(const certified &) = delete;
    void take(descriptor from)
    {
        SSL_free(ssl_);
        socket_ = std::move(from);
        ssl_ = SSL_new(context_);
        SSL_set_fd(ssl_, socket_.fd);
        SSL_set_accept_state(ssl_);
    }
    /** How many bytes of the client have come; below 0: it has given up. */
    int turn()
    {
        char some[4096];
        const std::string offset(8, '\0');
        ERR_clear_error();
        if (!ssl_)
            return 0;
        if (!said_ && SSL_do_handshake(ssl_) == 1)
            said_ = SSL_write(ssl_, offset.data(), 8) == 8;
        const int got = SSL_read(ssl_, some, sizeof some);
        const int what = SSL_get_error(ssl_, got);
        return got > 0 ? got : what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE ? 0 : -1;
    }

  private:
    SSL_CTX *context_;
    SSL *ssl_ = nullptr;
    descriptor socket_;
    bool said_ = false;
};

TEST_F(ImageServerTest, IsNotSentToOneWithACertificate)
{
    std::string endpoint;
    const descriptor listening = listening_at(endpoint);
    connect(endpoint);
    client->out().push("not for you");
    certified stranger;
    ASSERT_TRUE(run([&] {
        if (descriptor came{accept4(listening.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
            came.fd >= 0)
            stranger.take(std::move(came));
        const int count = stranger.turn();
        EXPECT_LE(count, 0) << "it has been sent something";
        return count > 0 || client->why().find("certificate") != std::string::npos;
    }));
    EXPECT_NE(client->now(), image_client::state::SENDING);
}

TEST_F(ImageServerTest, IsNotHeldUpByStrangersThatSayNothing)
{
    std::vector<descriptor> silent;
    for (std::size_t i = 0; i < image_server::kMostGuests / 2; i++)
        silent.push_back(connected_to(server.endpoint()));
    connect();
    const std::string bytes = random_bytes(3'000'000);
    ASSERT_TRUE(sends(bytes));
    EXPECT_TRUE(got == bytes);
    EXPECT_EQ(server.refused(), 0u) << "they have some time";
    ASSERT_TRUE(run([&] { return server.refused() == silent.size(); }));
    for (const descriptor &each : silent)
        EXPECT_TRUE(has_ended(each));
    ASSERT_TRUE(sends("more"));
}

TEST_F(ImageServerTest, HasFewGuests)
{
    std::vector<descriptor> silent;
    for (std::size_t i = 0; i < image_server::kMostGuests + 5; i++) {
        silent.push_back(connected_to(server.endpoint()));
        server.pump();
    }
    EXPECT_EQ(server.refused(), 5u);
    EXPECT_TRUE(has_ended(silent.front()));
    EXPECT_FALSE(has_ended(silent.back()));
    connect();
    ASSERT_TRUE(sends("bytes"));
    EXPECT_EQ(got, "bytes");
}

TEST_F(ImageServerTest, RefusesRubbish)
{
    connect();
    ASSERT_TRUE(sends("some"));
    unsigned refused = 0;
    for (const std::string &rubbish :
         {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(100'000, '\0'), random_bytes(100'000),
          std::string("\x16\x03\x01\xff\xff\x01", 6) + std::string(70'000, 'x')}) {
        const descriptor stranger = connected_to(server.endpoint());
        EXPECT_GT(send(stranger.fd, rubbish.data(), rubbish.size(), MSG_NOSIGNAL), 0);
        refused++;
        ASSERT_TRUE(run([&] { return server.refused() == refused && has_ended(stranger); }));
    }
    ASSERT_TRUE(sends(" more"));
    EXPECT_EQ(got, "some more");
}

/** The server's own side of a client that has the key, and says what it likes. */
class other_end {
  public:
    other_end(tls_context::end which, const tls_key &key, descriptor socket)
        : context_(which, key), connection(context_, std::move(socket))
    {
    }

  private:
    tls_context context_;

  public:
    tls_connection connection;
};

/** It says that it has what was never sent. */
TEST_F(ImageServerTest, IsNotBelievedWhatCannotBe)
{
    std::string endpoint;
    const descriptor listening = listening_at(endpoint);
    connect(endpoint);
    client->out().push("abc");
    const std::string none(8, '\0'), four = std::string(7, '\0') + '\4';
    for (const std::string &said : {four, none + four, std::string(8, '\xff')}) {
        ASSERT_TRUE(run([&] { return client->now() == image_client::state::HANDSHAKE; }));
        other_end server_end(
            tls_context::end::SERVER, key,
            descriptor{accept4(listening.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)});
        std::size_t sent = 0;
        const auto silence = client->silence();
        ASSERT_TRUE(run([&] {
            server_end.connection.shake_hands();
            sent += server_end.connection.write(std::string_view(said).substr(sent));
            server_end.connection.flush();
            return client->now() == image_client::state::PAUSE;
        }));
        EXPECT_FALSE(client->out().is_done());
        if (said != none + four) { /* of which the first could be */
            EXPECT_GE(client->silence(), silence) << "that is no sign";
        }
    }
}

/** One that dies in the middle is forgotten, and the next one goes on. */
TEST_F(ImageServerTest, OutlivesItsClient)
{
    connect();
    client->out().push("abc");
    ASSERT_TRUE(run([&] { return client->out().is_done(); }));
    client.reset();
    ASSERT_FALSE(run([] { return false; }, 50ms));
    connect(); /* its stream begins before what is there */
    ASSERT_FALSE(run([&] { return client->now() == image_client::state::SENDING; }, 300ms))
        << "what has come is not among what it has";
    client->out().push("abcdef");
    ASSERT_TRUE(run([&] { return client->out().is_done(); }));
    EXPECT_EQ(got, "abcdef");
}

TEST_F(ImageServerTest, TakesTheLastThatHasShownTheKey)
{
    other_end first(tls_context::end::CLIENT, key, connected_to(server.endpoint()));
    ASSERT_TRUE(run([&] {
        first.connection.shake_hands();
        return first.connection.now() == tls_connection::state::OPEN;
    }));
    EXPECT_EQ(first.connection.write("abc"), 3u);
    first.connection.flush();
    ASSERT_TRUE(run([&] { return got == "abc"; }));
    connect();
    client->out().push("abcdef");
    ASSERT_TRUE(run([&] { return client->out().is_done(); }));
    char bytes[64];
    while (first.connection.read(bytes, sizeof bytes) > 0)
        continue;
    EXPECT_EQ(first.connection.now(), tls_connection::state::CLOSED);
    EXPECT_EQ(got, "abcdef");
}

TEST_F(ImageServerTest, WaitsUntilThereAreDescriptors)
{
    connected_to(server.endpoint()); /* OpenSSL has opened all that it needs */
    ASSERT_TRUE(run([&] { return server.refused() == 1; }));
    connect();
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const descriptor next{dup(0)};
    const rlimit none{static_cast<rlim_t>(next.fd), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    EXPECT_FALSE(run([&] { return client->now() == image_client::state::SENDING; }, 300ms));
    const auto begin = clock::now();
    unsigned turns = 0;
    run(
        [&] {
            turns++;
            return false;
        },
        200ms);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_LT(turns, 2 * (clock::now() - begin) / 1ms + 2) << "it does not spin";
    ASSERT_TRUE(sends("bytes")) << client->why();
    EXPECT_EQ(got, "bytes");
}

TEST_F(ImageServerTest, GoesOnWithANewKeyOfTheConnection)
{
    other_end one(tls_context::end::CLIENT, key, connected_to(server.endpoint()));
    const std::string bytes = random_bytes(3'000'000);
    std::size_t sent = 0;
    int renewed = 0;
    ASSERT_TRUE(run([&] {
        one.connection.shake_hands();
        if (sent % 7 == 3 && one.connection.now() == tls_connection::state::OPEN)
            renewed += one.connection.renew_key();
        sent += one.connection.write(std::string_view(bytes).substr(sent, 10'000 + sent % 999));
        one.connection.flush();
        return sent == bytes.size() && got.size() == bytes.size();
    }));
    EXPECT_TRUE(got == bytes);
    EXPECT_GT(renewed, 5);
}

TEST(TlsKeyTest, IsReadAsItWasWritten)
{
    const tls_key made = tls_key::draw();
    EXPECT_EQ(made.text().size(), 2 * tls_key::kBytes);
    EXPECT_EQ(tls_key::of(made.text()).bytes(), made.bytes());
    EXPECT_NE(tls_key::draw().bytes(), made.bytes());
}

TEST(TlsKeyTest, RefusesWhatIsNone)
{
    const std::string good = tls_key::draw().text();
    for (const std::string &wrong :
         {std::string(), good.substr(2), good + "00", "g" + good.substr(1), good.substr(1) + "-",
          " " + good.substr(1)})
        EXPECT_THROW(tls_key::of(wrong), error) << wrong;
}

TEST(ImageClientTest, RefusesWhatIsNoPlace)
{
    loop events;
    const tls_key key = tls_key::draw();
    for (const char *wrong : {"", "tcp://", "tcp://a", "tcp://a:", "tcp://a:x", "tcp://a:0",
                              "tcp://a:65536", "ipc://a:1"})
        EXPECT_THROW(image_client(events, wrong, key), error) << wrong;
}

TEST(ImageClientTest, SaysThatNobodyIsThere)
{
    loop events;
    std::string gone;
    {
        image_server server(events, kHere, tls_key::draw());
        gone = server.endpoint();
    }
    image_client client(events, gone, tls_key::draw());
    const auto until = clock::now() + 5s;
    while (client.why().empty() && clock::now() < until) {
        events.turn(1);
        client.pump();
    }
    EXPECT_EQ(client.why(), "Connection refused");
}

TEST(ImageClientTest, SaysThatAHostHasNoAddress)
{
    loop events;
    image_client client(events, "tcp://no-such-host.invalid:1", tls_key::draw());
    const auto until = clock::now() + 60s;
    while (client.why().empty() && clock::now() < until) {
        events.turn(1);
        client.pump();
    }
    EXPECT_FALSE(client.why().empty());
}

} // namespace
} // namespace zc::holder
