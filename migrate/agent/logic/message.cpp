/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace zc::agent {
namespace {

/** Appends little-endian numbers. */
class writer {
  public:
    template <class T> void number(T value)
    {
        if constexpr (sizeof(T) == 8)
            put(std::bit_cast<std::uint64_t>(value), 8);
        else if constexpr (sizeof(T) == 4)
            put(std::bit_cast<std::uint32_t>(value), 4);
        else
            put(static_cast<std::uint64_t>(value), sizeof(T));
    }
    void flag(bool value) { put(value ? 1 : 0, 1); }
    void text(const std::string &value, std::size_t most = kMaxText)
    {
        std::size_t length = std::min(value.size(), most);
        number(static_cast<std::uint16_t>(length));
        bytes_.append(value, 0, length);
    }
    template <class T, class Each>
    void list(const std::vector<T> &values, std::size_t most, Each &&each)
    {
        std::size_t count = std::min(values.size(), most);
        number(static_cast<std::uint16_t>(count));
        for (std::size_t i = 0; i < count; i++)
            each(values[i]);
    }
    void zeros(std::size_t count) { bytes_.append(count, '\0'); }
    void patch(std::size_t at, std::uint32_t value)
    {
        for (int i = 0; i < 4; i++)
            bytes_[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
    }
    std::string take() { return std::move(bytes_); }
    std::size_t size() const { return bytes_.size(); }

  private:
    void put(std::uint64_t value, std::size_t width)
    {
        for (std::size_t i = 0; i < width; i++)
            bytes_.push_back(static_cast<char>(value >> (8 * i)));
    }
    std::string bytes_;
};

/** Takes them off again; after the first flaw everything is zero and stays so. */
class reader {
  public:
    explicit reader(std::string_view bytes) : bytes_(bytes) {}

    template <class T> void number(T &value)
    {
        if constexpr (sizeof(T) == 8)
            value = std::bit_cast<T>(get(8));
        else if constexpr (sizeof(T) == 4)
            value = std::bit_cast<T>(static_cast<std::uint32_t>(get(4)));
        else
            value = static_cast<T>(get(sizeof(T)));
    }
    /** Neither negative nor beyond all measure. */
    void amount(float &value)
    {
        number(value);
        if (!std::isfinite(value) || value < 0 || value > 1e15f)
            fail(flaw::bad_value);
    }
    void flag(bool &value)
    {
        std::uint64_t byte = get(1);
        if (byte > 1)
            fail(flaw::bad_value);
        value = byte == 1;
    }
    template <class Enum> void one_of(Enum &value, Enum last)
    {
        std::uint64_t byte = get(1);
        if (byte > static_cast<std::uint64_t>(last)) {
            fail(flaw::bad_value);
            byte = 0;
        }
        value = static_cast<Enum>(byte);
    }
    void text(std::string &value, std::size_t most = kMaxText)
    {
        std::uint64_t length = get(2);
        if (length > most)
            fail(flaw::bad_value);
        if (flaw_ == flaw::none && length > bytes_.size())
            fail(flaw::truncated);
        if (flaw_ != flaw::none)
            return;
        value.assign(bytes_.substr(0, length));
        bytes_.remove_prefix(length);
        for (char c : value) { /* they go to logs and terminals */
            if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
                fail(flaw::bad_value);
        }
    }
    template <class T, class Each>
    void list(std::vector<T> &values, std::size_t most, std::size_t least_bytes, Each &&each)
    {
        std::uint64_t count = get(2);
        if (count > most)
            fail(flaw::bad_value);
        else if (count * least_bytes > bytes_.size())
            fail(flaw::truncated);
        if (flaw_ != flaw::none)
            return;
        values.resize(count);
        for (T &value : values)
            each(value);
    }
    void zeros(std::size_t count)
    {
        if (count > bytes_.size())
            return fail(flaw::truncated);
        for (char c : bytes_.substr(0, count)) {
            if (c != 0)
                return fail(flaw::bad_value);
        }
        bytes_.remove_prefix(count);
    }
    void fail(flaw f)
    {
        if (flaw_ == flaw::none)
            flaw_ = f;
    }
    flaw end()
    {
        if (flaw_ == flaw::none && !bytes_.empty())
            flaw_ = flaw::trailing;
        return flaw_;
    }

  private:
    std::uint64_t get(std::size_t width)
    {
        if (width > bytes_.size())
            fail(flaw::truncated);
        if (flaw_ != flaw::none)
            return 0;
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < width; i++)
            value |= std::uint64_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
        bytes_.remove_prefix(width);
        return value;
    }
    std::string_view bytes_;
    flaw flaw_ = flaw::none;
};

/* One function per type, for both directions: what is written is what is read. */

void put(writer &w, const txn_id &v)
{
    w.number(v.decider);
    w.number(v.number);
}
void get(reader &r, txn_id &v)
{
    r.number(v.decider);
    r.number(v.number);
    if (v.decider == kNobody)
        r.fail(flaw::bad_value);
}

void put(writer &w, const load_digest &v)
{
    w.number(v.cpus);
    w.number(v.demand);
    w.number(v.speed);
    w.number(v.ranks);
    w.number(v.room);
    w.number(v.free_bytes);
    w.flag(v.draining);
}
void get(reader &r, load_digest &v)
{
    r.amount(v.cpus);
    r.amount(v.demand);
    r.amount(v.speed);
    r.number(v.ranks);
    r.number(v.room);
    r.number(v.free_bytes);
    r.flag(v.draining);
}

void put(writer &w, const member &v)
{
    w.number(v.id);
    w.number(v.incarnation);
    w.number(v.version);
    w.number(static_cast<std::uint8_t>(v.state));
    w.text(v.host);
    w.text(v.address);
    put(w, v.load);
}
void get(reader &r, member &v)
{
    r.number(v.id);
    r.number(v.incarnation);
    r.number(v.version);
    r.one_of(v.state, member_state::left);
    r.text(v.host);
    r.text(v.address);
    get(r, v.load);
    if (v.id == kNobody)
        r.fail(flaw::bad_value);
}
constexpr std::size_t kLeastMember = 8 + 8 + 4 + 1 + 2 + 2 + 29;

void put(writer &w, const std::vector<member> &v)
{
    w.list(v, kMaxGossip, [&](const member &m) { put(w, m); });
}
void get(reader &r, std::vector<member> &v)
{
    r.list(v, kMaxGossip, kLeastMember, [&](member &m) { get(r, m); });
}
void put(writer &w, const std::vector<rank_id> &v)
{
    w.list(v, kMaxRanks, [&](rank_id rank) { w.number(rank); });
}
void get(reader &r, std::vector<rank_id> &v)
{
    r.list(v, kMaxRanks, 4, [&](rank_id &rank) { r.number(rank); });
    if (v.empty())
        r.fail(flaw::bad_value);
}

void put(writer &w, const msg::ping &v)
{
    w.number(v.nonce);
    put(w, v.gossip);
}
void get(reader &r, msg::ping &v)
{
    r.number(v.nonce);
    get(r, v.gossip);
}
void put(writer &w, const msg::ack &v)
{
    w.number(v.nonce);
    put(w, v.gossip);
}
void get(reader &r, msg::ack &v)
{
    r.number(v.nonce);
    get(r, v.gossip);
}
void put(writer &w, const msg::ping_for_me &v)
{
    w.number(v.nonce);
    w.number(v.target);
}
void get(reader &r, msg::ping_for_me &v)
{
    r.number(v.nonce);
    r.number(v.target);
}
void put(writer &w, const msg::it_lives &v)
{
    w.number(v.nonce);
    w.number(v.target);
}
void get(reader &r, msg::it_lives &v)
{
    r.number(v.nonce);
    r.number(v.target);
}
void put(writer &w, const msg::probe &v)
{
    w.number(v.nonce);
    w.number(v.padding);
    w.zeros(v.padding);
}
void get(reader &r, msg::probe &v)
{
    r.number(v.nonce);
    r.number(v.padding);
    r.zeros(v.padding);
}
void put(writer &w, const msg::probe_ack &v)
{
    w.number(v.nonce);
}
void get(reader &r, msg::probe_ack &v)
{
    r.number(v.nonce);
}
void put(writer &w, const msg::link &v)
{
    w.number(v.node);
    w.number(v.rtt_us);
    w.number(v.bytes_per_us);
}
void get(reader &r, msg::link &v)
{
    r.number(v.node);
    r.amount(v.rtt_us);
    r.amount(v.bytes_per_us);
}
void put(writer &w, const msg::steal &v)
{
    w.number(v.packet);
    put(w, v.thief);
    w.number(v.hops);
    w.list(v.visited, kMaxVisited, [&](node_id n) { w.number(n); });
    w.list(v.links, kMaxLinks, [&](const msg::link &l) { put(w, l); });
}
void get(reader &r, msg::steal &v)
{
    r.number(v.packet);
    get(r, v.thief);
    r.number(v.hops);
    r.list(v.visited, kMaxVisited, 8, [&](node_id &n) { r.number(n); });
    r.list(v.links, kMaxLinks, 16, [&](msg::link &l) { get(r, l); });
    if (v.hops > kMaxVisited)
        r.fail(flaw::bad_value);
}
void put(writer &w, const msg::nudge &v)
{
    put(w, v.sender);
}
void get(reader &r, msg::nudge &v)
{
    get(r, v.sender);
}
void put(writer &w, const msg::reserve &v)
{
    put(w, v.txn);
    w.number(v.job);
    put(w, v.ranks);
    w.number(v.bytes);
    w.number(v.moves);
}
void get(reader &r, msg::reserve &v)
{
    get(r, v.txn);
    r.number(v.job);
    get(r, v.ranks);
    r.number(v.bytes);
    r.number(v.moves);
}
void put(writer &w, const msg::reserved &v)
{
    put(w, v.txn);
    w.flag(v.granted);
    put(w, v.load);
    w.text(v.reason);
}
void get(reader &r, msg::reserved &v)
{
    get(r, v.txn);
    r.flag(v.granted);
    get(r, v.load);
    r.text(v.reason);
}
void put(writer &w, const msg::lend &v)
{
    put(w, v.txn);
    w.number(v.job);
    w.number(v.epoch);
    put(w, v.ranks);
}
void get(reader &r, msg::lend &v)
{
    get(r, v.txn);
    r.number(v.job);
    r.number(v.epoch);
    get(r, v.ranks);
}
void put(writer &w, const msg::lent &v)
{
    put(w, v.txn);
    w.flag(v.granted);
    w.number(v.bytes);
    w.text(v.reason);
}
void get(reader &r, msg::lent &v)
{
    get(r, v.txn);
    r.flag(v.granted);
    r.number(v.bytes);
    r.text(v.reason);
}
void put(writer &w, const msg::release &v)
{
    put(w, v.txn);
    w.flag(v.moved);
}
void get(reader &r, msg::release &v)
{
    get(r, v.txn);
    r.flag(v.moved);
}
void put(writer &w, const msg::ask &v)
{
    put(w, v.txn);
    w.number(v.job);
    w.number(v.epoch);
    w.number(v.target);
    w.text(v.host);
    put(w, v.ranks);
}
void get(reader &r, msg::ask &v)
{
    get(r, v.txn);
    r.number(v.job);
    r.number(v.epoch);
    r.number(v.target);
    r.text(v.host);
    get(r, v.ranks);
}
void put(writer &w, const msg::query &v)
{
    put(w, v.txn);
    w.number(v.job);
}
void get(reader &r, msg::query &v)
{
    get(r, v.txn);
    r.number(v.job);
}
void put(writer &w, const msg::outcome &v)
{
    put(w, v.txn);
    w.number(v.job);
    w.number(static_cast<std::uint8_t>(v.what));
    w.number(v.epoch);
    w.number(v.bytes);
    for (float ms : v.phase_ms)
        w.number(ms);
    w.text(v.reason);
}
void get(reader &r, msg::outcome &v)
{
    get(r, v.txn);
    r.number(v.job);
    r.one_of(v.what, msg::verdict::unknown);
    r.number(v.epoch);
    r.number(v.bytes);
    for (float &ms : v.phase_ms)
        r.amount(ms);
    r.text(v.reason);
}
void put(writer &, const msg::leave &) {}
void get(reader &, msg::leave &) {}

template <std::size_t I = 0> flaw read_body(std::size_t type, reader &r, message_body &body)
{
    if constexpr (I == std::variant_size_v<message_body>) {
        return flaw::bad_type;
    } else {
        if (type != I)
            return read_body<I + 1>(type, r, body);
        get(r, body.emplace<I>());
        return r.end();
    }
}

constexpr std::array<std::string_view, std::variant_size_v<message_body>> kNames = {
    "ping",    "ack",      "ping_for_me", "it_lives", "probe",   "probe_ack",
    "steal",   "nudge",    "reserve",     "reserved", "lend",    "lent",
    "release", "ask",      "query",       "outcome",  "leave",
};
constexpr std::array<std::string_view, kFlaws> kFlawNames = {
    "none",      "too_short", "too_long", "bad_magic", "bad_version", "bad_type",        "bad_length",
    "truncated", "trailing",  "bad_value", "forged",   "replayed",    "old_incarnation",
};

/* What the type of a probe is on the wire; only probes may be long. */
constexpr std::uint16_t kProbeType = 4;
static_assert(std::is_same_v<std::variant_alternative_t<kProbeType, message_body>, msg::probe>);

} // namespace

std::string_view message_name(const message_body &body)
{
    return kNames[body.index()];
}

std::string_view flaw_name(flaw f)
{
    auto at = static_cast<std::size_t>(f);
    return at < kFlawNames.size() ? kFlawNames[at] : "unknown";
}

std::string encode(const message &m)
{
    writer w;
    w.number(kMagic);
    w.number(kVersion);
    w.number(static_cast<std::uint16_t>(m.body.index()));
    w.number(m.sender);
    w.number(m.incarnation);
    w.number(m.sequence);
    w.number(std::uint32_t{0});
    std::visit([&](const auto &body) { put(w, body); }, m.body);
    w.patch(kHeaderBytes - 4, static_cast<std::uint32_t>(w.size() - kHeaderBytes));
    return w.take();
}

flaw decode(std::string_view bytes, message &out)
{
    if (bytes.size() < kHeaderBytes)
        return flaw::too_short;
    if (bytes.size() > kMaxProbe)
        return flaw::too_long;
    reader header(bytes.substr(0, kHeaderBytes));
    std::uint32_t magic = 0;
    std::uint16_t version = 0;
    std::uint16_t type = 0;
    std::uint32_t length = 0;
    message m;
    header.number(magic);
    header.number(version);
    header.number(type);
    header.number(m.sender);
    header.number(m.incarnation);
    header.number(m.sequence);
    header.number(length);
    if (magic != kMagic)
        return flaw::bad_magic;
    if (version != kVersion)
        return flaw::bad_version;
    if (type >= std::variant_size_v<message_body>)
        return flaw::bad_type;
    if (bytes.size() > kMaxMessage && type != kProbeType)
        return flaw::too_long;
    if (length != bytes.size() - kHeaderBytes)
        return flaw::bad_length;
    if (m.sender == kNobody || m.incarnation == 0 || m.sequence == 0)
        return flaw::bad_value;
    reader body(bytes.substr(kHeaderBytes));
    flaw f = read_body(type, body, m.body);
    if (f == flaw::none)
        out = std::move(m);
    return f;
}

} // namespace zc::agent
