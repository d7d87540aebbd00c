/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_MESSAGE_H_INCLUDED
#define ZC_AGENT_MESSAGE_H_INCLUDED

/*
 * What agents say to each other, and how it looks on the wire.
 *
 *   offset  0  u32  magic "zcA1"
 *           4  u16  version
 *           6  u16  type: index in message::body. New types are added at the end: an agent
 *                that does not know one refuses that message, and no more
 *           8  u64  sender
 *          16  u64  incarnation of the sender: grows with every start
 *          24  u64  sequence: from 1, per sender and incarnation
 *          32  u32  length of the body
 *          36       body
 *
 * Little endian. Every list and string has a bound; decode() refuses whatever is
 * longer, shorter or otherwise not exactly what encode() makes.
 */

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "basics.h"

namespace zc::agent {

constexpr std::uint32_t kMagic = 0x3141'637a; /* "zcA1" */
constexpr std::uint16_t kVersion = 3;
constexpr std::size_t kHeaderBytes = 36;
constexpr std::size_t kMaxMessage = 32 << 10;            /* all but probes */
constexpr std::size_t kMaxProbe = (1 << 20) + (1 << 10); /* they weigh what they measure */
constexpr std::size_t kMaxText = 200;
constexpr std::size_t kMaxGossip = 16;
constexpr std::size_t kMaxVisited = 32;
constexpr std::size_t kMaxRanks = 1024; /* in one move */
constexpr std::size_t kMaxLinks = 16;
constexpr std::size_t kMaxPast = 1500; /* messages of ranks that are told at once */
constexpr std::size_t kPhases = 6;

/** What a node has and what is asked of it. */
struct load_digest {
    float cpus = 0;   /* processors it may use, cgroup limits taken into account */
    float demand = 0; /* runnable threads, reservations included */
    float speed = 1;  /* of one processor, relative to the others' */
    std::uint32_t ranks = 0;
    std::uint32_t room = 0; /* ranks it would still take */
    std::uint64_t free_bytes = 0;
    bool draining = false; /* wants to be rid of its ranks */
    bool operator==(const load_digest &) const = default;
};

enum class member_state : std::uint8_t { alive, suspect, dead, left };

/** What is known of one agent. */
struct member {
    node_id id = kNoNode;
    std::uint64_t incarnation = 0;
    std::uint32_t version = 0; /* of this incarnation; grows as it shows signs of life */
    member_state state = member_state::alive;
    std::string host;
    std::string address;
    load_digest load;
    bool operator==(const member &) const = default;
};

namespace msg {

struct ping {
    std::uint64_t nonce = 0;
    std::vector<member> gossip; /* the sender first */
    bool operator==(const ping &) const = default;
};
struct ack {
    std::uint64_t nonce = 0;
    std::vector<member> gossip;
    bool operator==(const ack &) const = default;
};
/** Ping a node for the sender, which has no answer from it. */
struct ping_for_me {
    std::uint64_t nonce = 0;
    node_id target = kNoNode;
    bool operator==(const ping_for_me &) const = default;
};
struct it_lives {
    std::uint64_t nonce = 0;
    node_id target = kNoNode;
    bool operator==(const it_lives &) const = default;
};
/** As long as it says: measures bandwidth. */
struct probe {
    std::uint64_t nonce = 0;
    std::uint32_t padding = 0;
    bool operator==(const probe &) const = default;
};
struct probe_ack {
    std::uint64_t nonce = 0;
    bool operator==(const probe_ack &) const = default;
};
/** Measured by the sender of the message. */
struct link {
    node_id node = kNoNode;
    float rtt_us = 0;
    float bytes_per_us = 0; /* 0: not known */
    bool operator==(const link &) const = default;
};
/** Work wanted: handed from agent to agent until one gives or hops run out. */
struct steal {
    std::uint64_t packet = 0;
    member thief;
    std::uint8_t hops = 0; /* left */
    std::vector<node_id> visited;
    std::vector<link> links; /* of the thief */
    bool operator==(const steal &) const = default;
};
/** I have more than I can do. */
struct nudge {
    member sender;
    bool operator==(const nudge &) const = default;
};
/** Keep room for these ranks: mine, and their partners from elsewhere. */
struct reserve {
    txn_id txn;
    job_id job = 0;
    std::vector<traveller> ranks;
    std::uint64_t bytes = 0;
    std::uint32_t moves = 0; /* the most that any of them was moved of late */
    bool operator==(const reserve &) const = default;
};
struct reserved {
    txn_id txn;
    bool granted = false;
    load_digest load; /* without this reservation */
    std::string reason;
    bool operator==(const reserved &) const = default;
};
/** Let me decide about ranks of yours. */
struct lend {
    txn_id txn;
    job_id job = 0;
    std::uint64_t epoch = 0;
    node_id target = kNoNode; /* where they would go */
    std::vector<rank_id> ranks;
    bool operator==(const lend &) const = default;
};
struct lent {
    txn_id txn;
    bool granted = false;
    std::uint64_t bytes = 0;
    std::string reason;
    bool operator==(const lent &) const = default;
};
/** The attempt is over: room and borrowed ranks are free again. */
struct release {
    txn_id txn;
    bool moved = false;
    bool operator==(const release &) const = default;
};
/** To the agent that reaches the job: please move. */
struct ask {
    txn_id txn;
    std::uint64_t incarnation = 0; /* of that agent; another one does not know what was given up */
    job_id job = 0;
    std::uint64_t epoch = 0; /* refused if the job has been reconfigured since */
    node_id target = kNoNode;
    std::string host;
    std::vector<rank_id> ranks;
    bool operator==(const ask &) const = default;
};
struct query {
    txn_id txn;
    job_id job = 0;
    bool operator==(const query &) const = default;
};
enum class verdict : std::uint8_t {
    running, /* taken by the job, not finished */
    moved,
    refused,   /* nothing was begun */
    failed,    /* begun, and undone: the ranks are where they were */
    timed_out, /* a rank did not reach a safe point; nothing moved */
    unknown,   /* never heard of, or not asked; and if it comes now it will be refused */
};
/** What became of one rank below zc-hold: each moves by itself. */
struct rank_result {
    rank_id rank = 0;
    verdict what = verdict::unknown;
    std::string reason;
    bool operator==(const rank_result &) const = default;
};
struct outcome {
    txn_id txn;
    job_id job = 0;
    verdict what = verdict::unknown;
    std::uint64_t epoch = 0; /* of the job, afterwards */
    std::uint64_t bytes = 0;
    float phase_ms[kPhases] = {}; /* negotiation, checkpoint, spawn, transfer, restore, rebuild */
    std::string reason;
    /* Of ranks below zc-hold; then @what is moved if any is. It is for the agent of their own node,
     * which alone asks for them: in messages it is not. Empty: the same became of all ranks. */
    std::vector<rank_result> each = {};
    bool operator==(const outcome &) const = default;
};
struct leave {
    bool operator==(const leave &) const = default;
};
/** A message that a rank has sent. */
struct sent {
    rank_id src = 0;
    rank_id dst = 0;
    std::uint64_t bytes = 0;
    std::uint32_t age_us = 0; /* when the message was made; saturating */
    bool operator==(const sent &) const = default;
};
/**
 * From the old home of ranks that have moved to the new one: their latest traffic, oldest
 * first. No answer; if it is lost, the new home learns their traffic from nothing, as if the
 * sender did not know this type.
 */
struct past {
    txn_id txn;
    job_id job = 0;
    std::vector<sent> events;
    bool operator==(const past &) const = default;
};
/** What ranks of the job at the sender have sent, oldest first. No answer; see collector.h. */
struct traffic {
    job_id job = 0;
    std::uint64_t at_ns = 0; /* by the sender's clock; ages are before that */
    std::vector<sent> events;
    bool operator==(const traffic &) const = default;
};

} // namespace msg

struct message {
    node_id sender = kNoNode;
    std::uint64_t incarnation = 0;
    std::uint64_t sequence = 0;
    std::variant<msg::ping, msg::ack, msg::ping_for_me, msg::it_lives, msg::probe, msg::probe_ack,
                 msg::steal, msg::nudge, msg::reserve, msg::reserved, msg::lend, msg::lent,
                 msg::release, msg::ask, msg::query, msg::outcome, msg::leave, msg::past,
                 msg::traffic>
        body;
    bool operator==(const message &) const = default;
};
using message_body = decltype(message::body);

std::string_view message_name(const message_body &body);

/** Bounds are the caller's to keep (lists are cut to them, texts too). */
std::string encode(const message &m);

enum class flaw : std::uint8_t {
    none,
    too_short,
    too_long,
    bad_magic,
    bad_version,
    bad_type,
    bad_length, /* header and size disagree */
    truncated,  /* body ends early */
    trailing,   /* body goes on */
    bad_value,  /* a bound, an enumerator or a number that cannot be */
    /* found by the admission, not by decode() */
    forged,
    replayed,
    old_incarnation,
};
constexpr std::size_t kFlaws = 13;
std::string_view flaw_name(flaw f);

/** Sets @out only if the result is flaw::none. */
flaw decode(std::string_view bytes, message &out);

} // namespace zc::agent

#endif
