/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_LANE_CONTROL_H_INCLUDED
#define ZC_BENCH_LANE_CONTROL_H_INCLUDED

#include <arpa/inet.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

[[noreturn]] __attribute__((format(printf, 1, 2))) inline void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    std::fputs("lane_pair: ", stderr);
    std::vfprintf(stderr, format, args);
    std::fputc('\n', stderr);
    va_end(args);
    std::exit(1);
}

/** The channel of the two processes' own: addresses, "go", results. */
class control {
  public:
    /** Waits for the other side at @address. */
    static control listen(const std::string &address, int port)
    {
        const sockaddr_in at = where(address, port);
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr *>(&at), sizeof at) < 0 ||
            ::listen(fd, 1) < 0)
            die("control: %s port %d: %s", address.c_str(), port, std::strerror(errno));
        const int got = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
        if (got < 0)
            die("control: accept: %s", std::strerror(errno));
        close(fd);
        return control(got);
    }

    /** Goes to the other side, which may not be there for some seconds. */
    static control connect(const std::string &address, int port)
    {
        const sockaddr_in at = where(address, port);
        for (int tries = 0; tries < 500; tries++) {
            const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (::connect(fd, reinterpret_cast<const sockaddr *>(&at), sizeof at) == 0)
                return control(fd);
            close(fd);
            usleep(20000);
        }
        die("control: nothing listens at %s port %d", address.c_str(), port);
    }

    void put(const void *data, std::size_t len)
    {
        const char *at = static_cast<const char *>(data);
        while (len > 0) {
            const ssize_t n = ::send(fd_, at, len, MSG_NOSIGNAL);
            if (n <= 0 && errno != EINTR)
                die("control: %s", std::strerror(errno));
            if (n > 0)
                at += n, len -= static_cast<std::size_t>(n);
        }
    }
    void get(void *data, std::size_t len)
    {
        char *at = static_cast<char *>(data);
        while (len > 0) {
            const ssize_t n = ::recv(fd_, at, len, MSG_WAITALL);
            if (n == 0)
                die("control: the other side has gone");
            if (n < 0 && errno != EINTR)
                die("control: %s", std::strerror(errno));
            if (n > 0)
                at += n, len -= static_cast<std::size_t>(n);
        }
    }
    template <typename T>
    void put(const T &value)
    {
        put(&value, sizeof value);
    }
    template <typename T>
    T get()
    {
        T value;
        get(&value, sizeof value);
        return value;
    }
    void put_blob(const std::vector<char> &blob)
    {
        put(blob.size());
        put(blob.data(), blob.size());
    }
    std::vector<char> get_blob()
    {
        std::vector<char> blob(get<std::size_t>());
        get(blob.data(), blob.size());
        return blob;
    }
    /** Both are here. */
    void meet()
    {
        put('m');
        get<char>();
    }

  private:
    explicit control(int fd) : fd_(fd)
    {
        const int one = 1;
        setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    static sockaddr_in where(const std::string &address, int port)
    {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(static_cast<uint16_t>(port));
        if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1)
            die("not an address: %s", address.c_str());
        return at;
    }

    int fd_;
};

#endif /* ZC_BENCH_LANE_CONTROL_H_INCLUDED */
