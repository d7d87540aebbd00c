/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zc::migrate {

/**
 * A list of calls and of what they returned, to be answered from in the same order:
 *
 *     call:  | length of name | name | number of arguments | arguments | code | length | returned |
 *
 * Of arguments only those are noted that can be compared in another process.
 */
class journal {
  public:
    /** Takes part in what a call returned. */
    class writer {
      public:
        explicit writer(std::vector<std::byte> &bytes) : bytes_(bytes) {}
        void put(const void *from, std::size_t length);
        template <typename Value>
        void put(const Value &value)
        {
            put(&value, sizeof value);
        }

      private:
        std::vector<std::byte> &bytes_;
    };

    class reader {
      public:
        explicit reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
        /** Throws error(EBADMSG) if there is not so much. */
        void get(void *to, std::size_t length);
        template <typename Value>
        Value get()
        {
            Value value;
            get(&value, sizeof value);
            return value;
        }
        std::span<const std::byte> get_span(std::size_t length);
        std::size_t left() const noexcept { return bytes_.size(); }

      private:
        std::span<const std::byte> bytes_;
    };

    using arguments = std::span<const std::int64_t>;

    explicit journal(std::size_t most) : most_(most) {}
    /** One to answer from. */
    explicit journal(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

    /** False if there is no room: then it is empty, and stays so. */
    bool note(const char *name, arguments with, int code, std::span<const std::byte> returned);
    bool is_full() const noexcept { return full_; }

    /** Names that begin so are of calls that others need not make: next() passes over them. */
    static constexpr char kLocal = '~';
    /** Is the next call one of that name, others of the kind passed over? */
    bool skip_local(const char *name);

    struct answer {
        int code;
        reader returned;
    };
    /** The next call, which has to be this one: else throws error(EBADMSG), saying what it is. */
    answer next(const char *name, arguments with);
    bool is_at_end() const noexcept { return at_ == bytes_.size(); }
    /** Calls answered, or noted. */
    std::size_t calls() const noexcept { return calls_; }

    const std::vector<std::byte> &bytes() const noexcept { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
    std::size_t most_ = 0;
    bool full_ = false;
    std::size_t at_ = 0;
    std::size_t calls_ = 0;
};

} // namespace zc::migrate
