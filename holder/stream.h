/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_STREAM_H_INCLUDED
#define ZC_HOLDER_STREAM_H_INCLUDED

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zc::holder {

/** What is sent between two holders. Those from MANAGER on are what the launcher has given a rank.
 * An image has a connection of its own (image_client.h), and no frames there. */
enum class stream_id : std::uint8_t { control, image, manager, input, output, errors };
inline constexpr std::size_t kStreams = 6;

/**
 * One message between holders. ZeroMQ loses some when a connection is made anew, never parts of
 * one.
 *
 *    byte   0        1         2..7   8..15                16..
 *         ┌────────┬─────────┬──────┬────────────────────┬─────────────────────────┐
 *         │ kind   │ stream  │  0   │ offset, big endian │ DATA: bytes from there  │
 *         └────────┴─────────┴──────┴────────────────────┴─────────────────────────┘
 *
 *    DATA   bytes of the stream from @offset on       END   it ends at @offset, which counts as a
 * byte ACK    what is below @offset has been used
 */
struct frame {
    enum kind_t : std::uint8_t { DATA, END, ACK };
    kind_t kind = DATA;
    stream_id stream = stream_id::control;
    std::uint64_t offset = 0;
    std::string bytes;
};

std::string encode(const frame &what);
/** Nothing, if @bytes are no frame. */
std::optional<frame> decode(std::string_view bytes);

/**
 * The end of a stream from which bytes are sent. It keeps what the other has not used yet, so that
 * it can be sent again: over a new connection, or to another holder, to which the rank has moved.
 */
class outgoing {
  public:
    static constexpr std::size_t kLongest = 256 << 10; /* of one frame */

    outgoing(stream_id stream, std::size_t window) : stream_(stream), window_(window) {}
    /** Bytes that fit; more can be pushed, but should not be. */
    std::size_t room() const noexcept { return kept() < window_ ? window_ - kept() : 0; }
    void push(std::string_view bytes);
    /** The same, without a copy if they are many. */
    void push_all_of(std::string &&bytes);
    /** A buffer that is used no more, as large as it was, or an empty one: to be pushed again, as
     * new memory takes longer than what it is for. */
    std::string take_spare();
    /** No more comes. */
    void end() { ended_ = true; }
    /** What is to be sent next, and counts as sent then. */
    std::optional<frame> next();
    /** It could not be sent. */
    void take_back(const frame &unsent) { sent_ = unsent.offset; }
    /** The next of those that have not been sent, or some of them; without frames. */
    std::string_view unsent() const;
    /** So many of them have been sent. */
    void note_sent(std::size_t count) { sent_ += count; }
    /** Send again from @offset on, without frames. False: it is not among what is kept. */
    bool resume(std::uint64_t offset);
    std::uint64_t sent() const noexcept { return sent_; }
    void acknowledge(std::uint64_t offset);
    /** Send again what has not been acknowledged. */
    void rewind() { sent_ = base_; }
    bool has_ended() const noexcept { return ended_; }
    /** All that was pushed, and the end if there is one, has been used. */
    bool is_done() const noexcept { return kept() == 0 && (!ended_ || end_used_); }
    bool waits() const noexcept { return sent_ > base_; }

    nlohmann::json save() const;
    void restore(const nlohmann::json &saved);

  private:
    std::size_t kept() const noexcept { return size_ - begin_; }
    std::uint64_t end_offset() const { return base_ + kept() + (ended_ && !end_used_ ? 1 : 0); }
    stream_id stream_;
    std::size_t window_;
    std::deque<std::string>
        kept_; /* what has been pushed, in it from begin_ on what lies at base_ */
    std::vector<std::string> spares_;
    std::size_t size_ = 0, begin_ = 0;
    std::uint64_t base_ = 0; /* acknowledged */
    std::uint64_t sent_ = 0; /* at least base_ */
    bool ended_ = false, end_used_ = false;
};

/** The end to which they come: each once and in order, whatever arrives how often. */
class incoming {
  public:
    explicit incoming(stream_id stream) : stream_(stream) {}
    void accept(const frame &arrived);
    /** Room for @size more bytes, the next ones, without frames: came() when they are there. */
    char *room(std::size_t size);
    void came(std::size_t count) noexcept { size_ += count; }
    std::string_view bytes() const noexcept { return {buffer_.get() + begin_, size_}; }
    /** @count of them have been used. */
    void use(std::size_t count);
    std::uint64_t used() const noexcept { return used_; }
    /** Where the next byte lies that has not come. */
    std::uint64_t expected() const noexcept { return used_ + size_; }
    /** The end has come, and all before has been used: use_end() then. */
    bool is_at_end() const noexcept { return end_seen_ && !end_used_ && size_ == 0; }
    void use_end();
    bool has_ended() const noexcept { return end_used_; }
    /** An acknowledgement, if one is due: something was used, or came again. */
    std::optional<frame> acknowledgement();

    nlohmann::json save() const;
    void restore(const nlohmann::json &saved);

  private:
    stream_id stream_;
    std::unique_ptr<char[]> buffer_; /* of what has not been used, from begin_ on */
    std::size_t begin_ = 0, size_ = 0, capacity_ = 0;
    std::uint64_t used_ = 0;
    bool end_seen_ = false, end_used_ = false, due_ = false;
};

} // namespace zc::holder

#endif
