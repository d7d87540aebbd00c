/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "allowed_hosts.h"
#include "error.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestCall = 4096;
constexpr std::size_t kMostAddresses = 6; /* the process manager's values are short */
constexpr std::size_t kMostUnproven = 32;
constexpr std::size_t kKeyBytes = 16;
constexpr int kCut = 30; /* s */
constexpr std::chrono::seconds kUnproven{5}, kRest{1};

std::string draw_key()
{
    std::array<unsigned char, kKeyBytes> bytes{};
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        throw_errno(errno, "getrandom");
    std::string text;
    for (unsigned char byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

/** In a time that does not tell how much of it is right. */
bool is_key(const std::string &said, const std::string &key)
{
    unsigned differs = said.size() != key.size();
    for (std::size_t i = 0; i < key.size(); i++)
        differs |= static_cast<unsigned char>(key[i]) ^
                   static_cast<unsigned char>(said.empty() ? 0 : said[i % said.size()]);
    return !differs;
}

/** Those of the network first: every host has the others. */
std::vector<std::string> all_addresses()
{
    ifaddrs *found = nullptr;
    if (getifaddrs(&found) != 0)
        throw_errno(errno, "getifaddrs");
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(found, &freeifaddrs);
    std::vector<std::string> of_network, of_host;
    for (const ifaddrs *at = found; at; at = at->ifa_next) {
        if (!at->ifa_addr || !(at->ifa_flags & IFF_UP))
            continue;
        const int family = at->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6)
            continue;
        if (family == AF_INET6 &&
            IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6 *>(at->ifa_addr)->sin6_addr))
            continue;
        std::array<char, 128> text{};
        const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        if (getnameinfo(at->ifa_addr, length, text.data(), text.size(), nullptr, 0,
                        NI_NUMERICHOST) != 0)
            continue;
        (at->ifa_flags & IFF_LOOPBACK ? of_host : of_network).emplace_back(text.data());
    }
    of_network.insert(of_network.end(), of_host.begin(), of_host.end());
    return of_network;
}

std::vector<std::string> own_addresses()
{
    std::vector<std::string> all = all_addresses();
    all.resize(std::min(all.size(), kMostAddresses));
    return all;
}

/** A socket that listens on any port of all addresses; of IPv4 alone where there is no IPv6. */
int listen_anywhere(int &port)
{
    for (int family : {AF_INET6, AF_INET}) {
        const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        const int off = 0;
        sockaddr_storage address{};
        address.ss_family = static_cast<sa_family_t>(family);
        socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        if (family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (bind(fd, reinterpret_cast<sockaddr *>(&address), length) == 0 && listen(fd, 64) == 0 &&
            getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length) == 0) {
            port = ntohs(family == AF_INET ? reinterpret_cast<sockaddr_in *>(&address)->sin_port
                                           : reinterpret_cast<sockaddr_in6 *>(&address)->sin6_port);
            return fd;
        }
        close(fd);
    }
    throw_errno(errno, "a socket to be called at");
}

int connect_to(const std::string &place, double timeout_s)
{
    const std::size_t slash = place.rfind('/');
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (slash == std::string::npos ||
        getaddrinfo(place.substr(0, slash).c_str(), place.substr(slash + 1).c_str(), &hints,
                    &found) != 0)
        return -EINVAL;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int problem = connect(fd, found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
    if (problem == EINPROGRESS) {
        pollfd event{fd, POLLOUT, 0};
        socklen_t length = sizeof problem;
        if (poll(&event, 1, static_cast<int>(timeout_s * 1000)) <= 0)
            problem = ETIMEDOUT;
        else
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length);
    }
    if (problem) {
        close(fd);
        return -problem;
    }
    return fd;
}

/** A host that is cut off does not even close its sockets: within kCut the other side finds that.
 *  Sockets of one host, between processes, have no such options. */
void find_cut(int fd)
{
    constexpr int kProbes = 5, kEach = kCut / (kProbes + 1), on = 1;
    constexpr unsigned kUnread = kCut * 1000; /* ms */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kEach, sizeof kEach);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kEach, sizeof kEach);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnread, sizeof kUnread);
}

/** The text of @field; "" if there is none, or something else: a stranger may have sent it. */
std::string text_of(const json &object, const char *field)
{
    const auto at = object.find(field);
    return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

bool is_heard(wire &line, double timeout_s)
{
    pollfd event{line.fd(), POLLIN, 0};
    if (::poll(&event, 1, static_cast<int>(timeout_s * 1000)) <= 0)
        return false;
    const std::optional<json> said = line.poll();
    return said && said->contains("heard");
}

} // namespace

wire::wire(int fd) : fd_(fd)
{
    fcntl(fd_, F_SETFD, FD_CLOEXEC);
    /* Objects are short, and what is sent after one that is not answered must not wait for its
     * acknowledgement, which TCP delays by 40 ms. Sockets of another kind refuse this. */
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
    find_cut(fd_);
}

wire::~wire()
{
    close(fd_);
}

void wire::shut_down() const noexcept
{
    shutdown(fd_, SHUT_RDWR);
}

bool wire::send(const json &object)
{
    constexpr int kWait = 10'000; /* ms for the other side to read what was sent before */
    const std::string line = object.dump() + "\n";
    for (std::size_t at = 0; at < line.size();) {
        const ssize_t sent = ::send(fd_, line.data() + at, line.size() - at, MSG_NOSIGNAL);
        if (sent > 0) {
            at += static_cast<std::size_t>(sent);
            continue;
        }
        pollfd event{fd_, POLLOUT, 0};
        if (sent == 0 || (errno != EAGAIN && errno != EINTR) || ::poll(&event, 1, kWait) == 0) {
            closed_ = true;
            return false;
        }
    }
    return true;
}

std::optional<json> wire::poll()
{
    std::array<char, 4096> buffer;
    std::size_t end = read_.find('\n');
    while (end == std::string::npos) {
        const ssize_t got = closed_ ? 0 : recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got <= 0) {
            closed_ |= got == 0 || (errno != EAGAIN && errno != EINTR);
            return std::nullopt;
        }
        const std::size_t before = read_.size();
        read_.append(buffer.data(), static_cast<std::size_t>(got));
        end = read_.find('\n', before);
        closed_ |= std::min(end, read_.size()) > longest_;
    }
    if (end > longest_)
        return std::nullopt;
    const json object = json::parse(read_.substr(0, end), nullptr, false);
    read_.erase(0, end + 1);
    if (object.is_object())
        return object;
    closed_ = true;
    return std::nullopt;
}

std::string calling_card::to_text(std::size_t longest) const
{
    std::string text = key;
    for (const std::string &address : addresses)
        if (text == key || text.size() + 1 + address.size() <= longest)
            text += ";" + address;
    return text;
}

calling_card calling_card::from_text(const std::string &text)
{
    calling_card card;
    std::size_t at = std::min(text.find(';'), text.size());
    card.key = text.substr(0, at);
    while (at < text.size()) {
        const std::size_t end = std::min(text.find(';', at + 1), text.size());
        card.addresses.push_back(text.substr(at + 1, end - at - 1));
        at = end;
    }
    if (card.key.size() != 2 * kKeyBytes || card.addresses.empty())
        throw error(EBADMSG, "not a key and addresses: " + text.substr(std::min(at, text.size())));
    return card;
}

std::optional<calling_card> calling_card::if_any(const std::string &text) noexcept
try {
    return from_text(text);
} catch (const error &) {
    return std::nullopt;
}

call_receiver::call_receiver()
{
    int port = 0;
    card_.key = draw_key();
    listener_ = listen_anywhere(port);
    for (const std::string &address : own_addresses())
        card_.addresses.push_back(address + "/" + std::to_string(port));
}

call_receiver::~call_receiver()
{
    close(listener_);
}

void call_receiver::accept_callers()
{
    if (clock::now() < rests_until_)
        return;
    const int caller = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (caller >= 0) {
        unproven_.push_back({std::make_unique<wire>(caller), clock::now() + kUnproven});
        unproven_.back().line->limit(kLongestCall);
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        rests_until_ = clock::now() + kRest; /* the caller stays where poll(2) finds it at once */
    }
    if (unproven_.size() > kMostUnproven)
        unproven_.erase(unproven_.begin());
}

std::unique_ptr<wire> call_receiver::poll(std::string &why)
{
    accept_callers();
    for (unproven &each : unproven_) {
        std::unique_ptr<wire> &one = each.line;
        const std::optional<json> said = one->poll();
        if (!said)
            continue;
        if (!is_key(text_of(*said, "key"), card_.key)) {
            one->shut_down();
            continue;
        }
        why = text_of(*said, "why");
        one->limit();
        one->send({{"heard", true}});
        std::unique_ptr<wire> found = std::move(one);
        std::erase_if(unproven_, [](const unproven &other) { return !other.line; });
        return found;
    }
    std::erase_if(unproven_, [](const unproven &each) {
        return each.line->is_closed() || clock::now() >= each.until;
    });
    return nullptr;
}

int call_receiver::watch(std::vector<pollfd> &events) const
{
    const clock::time_point now = clock::now();
    std::optional<clock::time_point> next;
    if (now < rests_until_)
        next = rests_until_;
    else
        events.push_back({listener_, POLLIN, 0});
    for (const unproven &one : unproven_) {
        events.push_back({one.line->fd(), POLLIN, 0});
        next = std::min(next.value_or(one.until), one.until);
    }
    if (!next)
        return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
    return static_cast<int>(std::max<std::int64_t>(left, 0));
}

std::vector<std::string> places_to_call(const calling_card &card, const std::set<std::string> &own)
{
    std::vector<std::string> others;
    bool is_of_this_host = true;
    for (const std::string &place : card.addresses) {
        const std::string address = place.substr(0, place.rfind('/'));
        if (own.contains(address))
            continue;
        others.push_back(place);
        is_of_this_host &= is_loopback(address);
    }
    return is_of_this_host ? card.addresses : others;
}

std::unique_ptr<wire> call(const calling_card &card, const std::string &why, double timeout_s)
{
    std::string problems;
    const std::vector<std::string> own = all_addresses();
    const std::vector<std::string> places = places_to_call(card, {own.begin(), own.end()});
    const double each_s = timeout_s / static_cast<double>(places.size());
    for (const std::string &place : places) {
        const int fd = connect_to(place, each_s);
        if (fd >= 0) {
            auto line = std::make_unique<wire>(fd);
            /* Another host may have an address of this name, too. */
            if (line->send({{"key", card.key}, {"why", why}}) && is_heard(*line, each_s))
                return line;
        }
        problems += " " + place + ": " + std::strerror(fd < 0 ? -fd : EPIPE);
    }
    throw error(EHOSTUNREACH, "cannot be called at" + problems);
}

} // namespace zc::migrate
