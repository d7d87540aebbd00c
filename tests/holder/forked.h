/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_HOLDER_FORKED_H_INCLUDED
#define ZC_TESTS_HOLDER_FORKED_H_INCLUDED

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <new>
#include <stdexcept>
#include <string>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptor.h"
#include "known_pages.h"

namespace zc::holder {

/** A process that has done @first, then does @again until it is killed, by the end of this. */
class forked {
  public:
    explicit forked(const std::function<void()> &first, const std::function<void()> &again = {})
        : ready_(static_cast<std::atomic<bool> *>(mmap(
              nullptr, sizeof *ready_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)))
    {
        malloc_trim(0); /* what was freed would be memory of that process, too */
        if (ready_ == MAP_FAILED || (pid_ = fork()) < 0)
            throw std::runtime_error("no process");
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            first();
            *ready_ = true;
            for (;;)
                again ? again() : static_cast<void>(pause());
        }
        while (!*ready_) {
            if (waitpid(pid_, nullptr, WNOHANG) == pid_)
                throw std::runtime_error("the process has ended");
            usleep(1000);
        }
    }
    ~forked()
    {
        end();
        munmap(ready_, sizeof *ready_);
    }
    forked(const forked &) = delete;
    forked &operator=(const forked &) = delete;

    pid_t pid() const noexcept { return pid_; }
    /** A descriptor of the process, by its number there. */
    descriptor take(int number) const
    {
        const descriptor process{static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))};
        return descriptor{static_cast<int>(syscall(SYS_pidfd_getfd, process.fd, number, 0))};
    }
    void end()
    {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        pid_ = -1;
    }

  private:
    std::atomic<bool> *ready_; /* shared with it: it may have no descriptor */
    pid_t pid_ = -1;
};

constexpr std::size_t kPage = known_pages::kPage;

/** Where a test is not about patience: a thread may have to wait long for a processor. */
constexpr std::chrono::minutes kPatience{1};

/** Memory of whole pages, private unless it is said otherwise. */
inline char *pages_of_memory(std::size_t count, int flags = MAP_PRIVATE)
{
    void *at = mmap(nullptr, count * kPage, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        throw std::runtime_error("no memory");
    return static_cast<char *>(at);
}

/** What of a rank opens it for its holder. */
inline int own_userfault()
{
    return static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
}

/** A process and what shares memory with it: steps that the one does when the other says so. */
struct stepped {
    std::atomic<int> asked, done;
    static stepped &make() { return *new (pages_of_memory(1, MAP_SHARED)) stepped; }
    /** In the process, again and again. */
    void serve(const std::function<void(int step)> &step)
    {
        const int now = asked;
        if (now != done) {
            step(now);
            done = now;
        }
        usleep(100);
    }
    void ask(int step)
    {
        for (asked = step; done != step;)
            usleep(100);
    }
};

/** A page like no other, by @number. */
inline std::string page_of(std::uint64_t number)
{
    std::string page(kPage, '\0');
    for (std::size_t at = 0; at < page.size(); at += sizeof number) {
        const std::uint64_t word = (number + 1) * 0x9e3779b97f4a7c15U + at;
        page.replace(at, sizeof word, reinterpret_cast<const char *>(&word), sizeof word);
    }
    return page;
}

/** @count pages of the numbers from @first on. */
inline void write_pages(char *to, std::uint64_t first, std::size_t count)
{
    for (std::size_t i = 0; i < count; i++)
        page_of(first + i).copy(to + i * kPage, kPage);
}

} // namespace zc::holder

#endif
