/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace zc::migrate {

/**
 * Objects that are known by numbers, which are looked up without a lock. A number is an index,
 * and above it how often that index was used before, so that a number that was given back is not
 * taken for a new one. 0 is no number. An object stays where it is, and has a reset().
 *
 *     number   | reuse | index |
 *
 * take() and give_back() lock once threads() has been called.
 */
template <typename Object, unsigned IndexBits, unsigned ReuseBits>
class slots {
  public:
    static_assert(IndexBits > 10 && IndexBits + ReuseBits <= 31);
    static constexpr std::uint32_t kIndices = 1u << IndexBits;

    ~slots()
    {
        for (auto &one : chunks_)
            delete one.load();
    }
    slots() = default;
    slots(const slots &) = delete;
    slots &operator=(const slots &) = delete;

    void threads() noexcept { threads_ = true; }

    /** nullptr if it is not in use. */
    Object *find(std::uint32_t number) const noexcept
    {
        const std::uint32_t index = number & (kIndices - 1);
        chunk *where = chunks_[index >> kChunkBits].load(std::memory_order_acquire);
        if (!where) [[unlikely]]
            return nullptr;
        slot &one = (*where)[index & (kChunk - 1)];
        return one.number.load(std::memory_order_acquire) == number && number ? &one.object
                                                                              : nullptr;
    }

    /** Of a number that is in use. */
    Object &operator[](std::uint32_t number) const noexcept
    {
        const std::uint32_t index = number & (kIndices - 1);
        chunk *where = chunks_[index >> kChunkBits].load(std::memory_order_relaxed);
        return (*where)[index & (kChunk - 1)].object;
    }

    /** 0 if all are in use. */
    std::uint32_t take()
    {
        const possible_lock guard(*this);
        slot *one;
        if (!free_.empty()) [[likely]] {
            one = free_.back();
            free_.pop_back();
        } else if (one = unused(); !one) {
            return 0;
        }
        return use(*one, one->next);
    }

    /** That one: false if its index is in use. */
    bool take(std::uint32_t number)
    {
        const possible_lock guard(*this);
        const std::uint32_t index = number & (kIndices - 1);
        slot &one = at(index);
        if (index == 0 || one.number.load(std::memory_order_relaxed))
            return false;
        std::erase(free_, &one);
        use(one, number);
        return true;
    }

    void give_back(std::uint32_t number)
    {
        const possible_lock guard(*this);
        const std::uint32_t index = number & (kIndices - 1);
        chunk *where = chunks_[index >> kChunkBits].load(std::memory_order_relaxed);
        if (!where || !number)
            return;
        slot &one = (*where)[index & (kChunk - 1)];
        if (one.number.load(std::memory_order_relaxed) != number)
            return;
        one.number.store(0, std::memory_order_release);
        one.object.reset();
        one.next = (number + kIndices) & kNumbers;
        count(-1);
        if (index < next_) [[likely]]
            free_.push_back(&one);
    }

    std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

    /** In the order of their indices; @each may not take or give back. */
    template <typename Each>
    void for_each(Each each) const
    {
        for (const auto &one : chunks_)
            if (chunk *where = one.load(std::memory_order_acquire))
                for (slot &s : *where)
                    if (const std::uint32_t number = s.number.load(std::memory_order_acquire))
                        each(number, s.object);
    }

  private:
    static constexpr unsigned kChunkBits = 10;
    static constexpr std::uint32_t kChunk = 1u << kChunkBits;
    static constexpr std::uint32_t kNumbers = (1u << (IndexBits + ReuseBits)) - 1;
    struct slot {
        std::atomic<std::uint32_t> number{0}; /* 0: not in use */
        std::uint32_t next = 0;               /* its next number; 0: it was never in use */
        Object object;
    };
    using chunk = std::array<slot, kChunk>;

    class possible_lock {
      public:
        explicit possible_lock(slots &of) : mutex_(of.threads_ ? &of.mutex_ : nullptr)
        {
            if (mutex_) [[unlikely]]
                mutex_->lock();
        }
        ~possible_lock()
        {
            if (mutex_) [[unlikely]]
                mutex_->unlock();
        }
        possible_lock(const possible_lock &) = delete;
        possible_lock &operator=(const possible_lock &) = delete;

      private:
        std::mutex *const mutex_;
    };
    /** By one at a time, as all that changes these. */
    void count(int more) noexcept
    {
        used_.store(used_.load(std::memory_order_relaxed) + static_cast<std::size_t>(more),
                    std::memory_order_relaxed);
    }
    slot &at(std::uint32_t index)
    {
        auto &where = chunks_[index >> kChunkBits];
        if (!where.load(std::memory_order_relaxed))
            where.store(new chunk, std::memory_order_release);
        return (*where.load(std::memory_order_relaxed))[index & (kChunk - 1)];
    }
    /** One that take() has not come to before; nullptr if there is none. */
    slot *unused()
    {
        std::uint32_t index;
        do {
            if (next_ == kIndices)
                return nullptr;
            index = next_++;
        } while (at(index).number.load(std::memory_order_relaxed));
        slot &one = at(index);
        if (one.next == 0)
            one.next = kIndices | index;
        return &one;
    }
    std::uint32_t use(slot &one, std::uint32_t number)
    {
        count(1);
        one.number.store(number, std::memory_order_release);
        return number;
    }

    mutable std::array<std::atomic<chunk *>, kIndices / kChunk> chunks_{};
    bool threads_ = false;
    std::mutex mutex_;
    std::vector<slot *> free_;
    std::uint32_t next_ = 1;
    std::atomic<std::size_t> used_{0};
};

} // namespace zc::migrate
