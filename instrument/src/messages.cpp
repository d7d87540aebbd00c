/* SPDX-License-Identifier: BSD-3-Clause */
#include "messages.h"

#include "call_walk.h"
#include "control.h"

#include <algorithm>

namespace zc::instrument {

using llvm::isa;

namespace {

using conditions = std::set<std::string>;

/* What sends or receives a message, in one of the ways that lead to it. */
struct half {
    std::string place;
    bool is_sent;
    std::string
        tag; /* that of an expression begins with a space, and so does none that is a number */
    conditions when;
    conditions besides = {};  /* what else decides, alike in each iteration, and is no number */
    bool is_counted;          /* it is run just once where the conditions hold */
    bool is_fixed = false;    /* the tag is the same in each iteration */
    bool is_exchange = false; /* it is half of a call that swaps messages with one other rank */
    std::map<const clang::Stmt *, std::string> branches; /* of what decides about it */
    std::size_t rounds = 1; /* of loops that are not gone through one by one */
};

using halves = std::vector<half>;

const std::string kAny = "any", kNotDecided = " ?";

/* How a condition begins that may differ between ranks. */
const std::string kByRank = "by rank: ";

bool is_computed(const std::string &tag)
{
    return tag[0] == ' ';
}

bool has_effect(const known_call &known, std::string_view letters)
{
    for (unsigned i = 0; i < known.arguments.size(); i++)
        if (letters.find(known.effect(i)) != std::string_view::npos)
            return true;
    return false;
}

/* May what is sent with one of these tags be received with the other? */
bool may_be_same(const std::string &sent, const std::string &received)
{
    return sent == received || received == kAny || is_computed(sent) || is_computed(received);
}

std::string with_tag(const std::string &tag)
{
    return is_computed(tag) ? ": its tag is computed" : ": its tag is " + tag;
}

/* @value is computed of known numbers and nothing else. */
bool is_of_numbers(const function &in, const clang::Stmt *value, const known_values &known)
{
    clang::Expr::EvalResult number;
    const auto *expression = llvm::dyn_cast_or_null<clang::Expr>(value);
    if (!expression || expression->EvaluateAsInt(number, in.context()))
        return true;
    if (const auto *reference = llvm::dyn_cast<clang::DeclRefExpr>(expression)) {
        const auto found = known.find(llvm::dyn_cast<clang::VarDecl>(reference->getDecl()));
        return found != known.end() && found->second.number;
    }
    return std::all_of(expression->child_begin(), expression->child_end(),
                       [&](const clang::Stmt *child) { return is_of_numbers(in, child, known); });
}

/* What the calls of a walk send and receive, and in which iterations of a loop. */
class traffic {
  public:
    traffic(const program &all, const call_graph &calls, const accesses &used,
            const uniformity &equal, const loop &one, const loop &point)
        : program_(all), equal_(equal), now_(all, calls, used, one), walk_(all, calls, now_),
          loop_(one), is_once_(false)
    {
        walk_.run(*one.in, one.statement, point);
        note_all(&one);
    }

    /* Of @in as a whole, which is run once: what is not the same in each iteration of @one does not
     * matter. */
    traffic(const program &all, const call_graph &calls, const accesses &used,
            const uniformity &equal, const function &in, const loop &one)
        : program_(all), equal_(equal), now_(all, calls, used, one), walk_(all, calls, now_),
          loop_(one), is_once_(true)
    {
        walk_.run(in, in.decl->getBody(), one);
        note_all(nullptr);
    }

    const findings &found() const { return found_; }
    const findings &assumed() const { return assumed_; }
    const halves &all() const { return all_; }
    halves front() const
    {
        return {all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(before_point_)};
    }
    halves behind() const
    {
        return {all_.begin() + static_cast<std::ptrdiff_t>(before_point_), all_.end()};
    }

  private:
    void note_all(const loop *of);
    bool decide(const step &at, const loop *of, const std::string &way, half &to) const;
    static void add_rounds(const step &at, const control &by, half &to);
    std::optional<half> half_of(const visit &one, const loop *of) const;
    std::string tag_of(const visit &one, int argument) const;
    void set_tag(const visit &one, int argument, half &of) const;
    bool is_exchange(const visit &one) const;
    void note_start(const half &one);
    halves persistent(const half &start) const;

    const program &program_;
    const uniformity &equal_;
    iteration now_;
    call_walk walk_;
    const loop &loop_;
    bool is_once_;
    halves all_, starts_;
    std::size_t before_point_ = 0;
    findings found_, assumed_;
    mutable std::map<const clang::CallExpr *, std::vector<control>> controls_;
};

void traffic::note_all(const loop *of)
{
    halves posted; /* received where they are waited for */
    const auto receive_posted = [&] {
        all_.insert(all_.end(), posted.begin(), posted.end());
        posted.clear();
    };
    if (walk_.is_cut())
        found_.push_back({loop_.place, "could not decide whether a message is on its way: there "
                                       "are too many ways to calls that send or receive"});
    for (std::size_t i = 0; i < walk_.visits().size() && !walk_.is_cut(); i++) {
        if (i == walk_.before_point()) {
            receive_posted();
            before_point_ = all_.size();
        }
        const auto &one = walk_.visits()[i];
        auto made = half_of(one, of);
        if (!made)
            continue;
        if (has_effect(*one.known, "ST") && !is_once_)
            note_start(*made);
        else if (has_effect(*one.known, "ST") && i < walk_.before_point()) {
            const auto started = persistent(*made);
            all_.insert(all_.end(), started.begin(), started.end());
        }
        if (has_effect(*one.known, "P"))
            continue;
        made->is_exchange = is_exchange(one);
        made->is_sent = true;
        if (one.known->tag >= 0) {
            set_tag(one, one.known->tag, *made);
            all_.push_back(*made);
        }
        made->is_sent = false;
        if (one.known->other_tag >= 0) {
            set_tag(one, one.known->other_tag, *made);
            (has_effect(*one.known, "R") ? posted : all_).push_back(*made);
        }
        if (has_effect(*one.known, "WA"))
            receive_posted();
    }
    receive_posted();
    if (walk_.before_point() >= walk_.visits().size())
        before_point_ = all_.size();
    if (!starts_.empty()) {
        const auto made = persistent(starts_.front());
        all_.insert(all_.end(), made.begin(), made.end());
    }
}

/* nullopt: this way does not lead to it. */
std::optional<half> traffic::half_of(const visit &one, const loop *of) const
{
    const auto &last = one.way.back();
    half made{last.in->place(last.call), false, {}, {}, {}, true, false, false, {}, 1};
    std::string way;
    for (std::size_t i = 0; i < one.way.size(); i++) {
        const auto &at = one.way[i];
        way += at.rounds;
        if (at.is_repeated) {
            made.is_counted = false;
            made.when.insert("each call of " + at.in->name + "(), which calls itself");
            made.besides.insert("each call of " + at.in->name + "()" + way);
        }
        if (!decide(at, i == 0 ? of : nullptr, way, made))
            return {};
        way += " in " + exact_place(*at.in, at.call);
    }
    if (made.rounds > 1 && !is_once_)
        made.when.insert("each of " + std::to_string(made.rounds) + " rounds");
    return made;
}

/* How often a loop whose rounds are not gone through one by one runs what is in it. One that may
 * end before its time, or has too many, is as often as itself only. */
void traffic::add_rounds(const step &at, const control &by, half &to)
{
    const auto known = at.repeated.find(by.statement);
    if (!by.is_jump && known != at.repeated.end() &&
        (!known->second || __builtin_mul_overflow(to.rounds, known->second, &to.rounds)))
        to.when.insert("rounds at " + exact_place(*at.in, by.statement));
    for (const auto &[loop, count] : at.repeated)
        if (by.is_jump && !count && is_below(*at.in, by.statement, loop))
            to.when.insert(by.branch + " at " + exact_place(*at.in, by.statement));
}

/* Adds what decides about one step of a way. false: it is never taken. */
bool traffic::decide(const step &at, const loop *of, const std::string &way, half &to) const
{
    const auto [controls, is_new] = controls_.try_emplace(at.call);
    if (is_new)
        controls->second = controls_of(*at.in, at.root, at.call, of);
    for (const auto &each : controls->second) {
        const bool is_loop = body_of(each.statement) != nullptr;
        if (is_loop && !each.is_jump && at.unrolled.count(each.statement))
            continue;
        add_rounds(at, each, to);
        const auto *condition = condition_of_control(each.statement);
        const bool is_choice = condition && !is_loop && !isa<clang::SwitchStmt>(each.statement);
        if (const auto value = is_choice ? number_of(*at.in, condition, at.known) : std::nullopt) {
            const bool is_else = each.branch.size() > 3 &&
                                 each.branch.compare(each.branch.size() - 4, 4, "else") == 0;
            const bool is_taken = (*value != 0) != is_else;
            if (each.is_jump ? is_taken && each.is_alone : !is_taken)
                return false;
            if (!is_taken || !each.is_jump)
                continue;
        } else if (is_choice && is_of_numbers(*at.in, condition, at.known))
            to.when.insert(each.branch + " at " + exact_place(*at.in, each.statement) + way);
        if (!each.is_jump)
            to.branches.emplace(each.statement, each.branch);
        if (is_once_ ||
            (condition && now_.is_fixed(*at.in, condition, iteration::span::all_iterations))) {
            to.is_counted = false;
            /* In front of all loops a variable may get another value between two conditions. */
            to.besides.insert(each.branch +
                              (is_choice && !is_once_
                                   ? " of " + now_.text_of(*at.in, condition, at.known)
                                   : " at " + exact_place(*at.in, each.statement) + way));
            continue;
        }
        const bool is_same =
            is_choice && now_.is_fixed(*at.in, condition, iteration::span::one_iteration);
        const auto by = equal_.may_differ(each.statement) ? kByRank : "";
        to.when.insert(by + each.branch +
                       (is_same ? " of " + now_.text_of(*at.in, condition, at.known)
                                : " at " + exact_place(*at.in, each.statement) + way));
    }
    return true;
}

/* A number, or a text. */
std::string traffic::tag_of(const visit &one, int argument) const
{
    for (const auto &at : one.way)
        if (!at.is_certain)
            return kNotDecided;
    const auto &last = one.way.back();
    if (static_cast<unsigned>(argument) >= last.call->getNumArgs())
        return kNotDecided;
    const auto *tag = last.call->getArg(static_cast<unsigned>(argument));
    if (const auto value = number_of(*last.in, tag, last.known))
        return *value < 0 ? kAny : std::to_string(*value); /* MPI_ANY_TAG */
    if (!is_once_ && !now_.is_fixed(*last.in, tag, iteration::span::one_iteration))
        return kNotDecided;
    return " " + now_.text_of(*last.in, tag, last.known);
}

void traffic::set_tag(const visit &one, int argument, half &of) const
{
    const auto &last = one.way.back();
    of.tag = tag_of(one, argument);
    of.is_fixed = of.tag != kNotDecided && !is_once_ &&
                  now_.is_fixed(*last.in, last.call->getArg(static_cast<unsigned>(argument)),
                                iteration::span::all_iterations);
}

/* MPI_Sendrecv() with one rank and one tag. That rank's call, with what it sends here, ends with
 * this one, so that neither can be at a safe point while a message of the two is on its way. */
bool traffic::is_exchange(const visit &one) const
{
    const auto &last = one.way.back();
    const int sent = one.known->tag, received = one.known->other_tag;
    if (sent < 1 || received < 1 || static_cast<unsigned>(received) >= last.call->getNumArgs())
        return false;
    const auto text_of = [&](int argument) {
        return now_.text_of(*last.in, last.call->getArg(static_cast<unsigned>(argument)),
                            last.known);
    };
    for (const int argument : {sent, received, sent - 1, received - 1})
        if (last.call->getArg(static_cast<unsigned>(argument))->HasSideEffects(last.in->context()))
            return false;
    return text_of(sent) == text_of(received) && text_of(sent - 1) == text_of(received - 1);
}

/* What a persistent request sends is said where it is made, and it is on its way from where it is
 * started. Which of them that is, is not followed: all of the program are. */
void traffic::note_start(const half &one)
{
    assumed_.push_back({one.place, "which persistent requests this starts is not followed: each "
                                   "of the program is taken to be started once"});
    if (!starts_.empty() && starts_.front().when != one.when)
        found_.push_back(
            {one.place, "could not decide whether a message is on its way: this starts "
                        "persistent requests in other iterations than what is at " +
                            starts_.front().place});
    starts_.push_back(one);
}

halves traffic::persistent(const half &start) const
{
    halves sent, received;
    for_each_statement(program_, [&](const function *in, const clang::Stmt *each) {
        const auto *call = llvm::dyn_cast_or_null<clang::CallExpr>(each);
        const auto *known = call ? find_message(program_, call) : nullptr;
        if (!known || !has_effect(*known, "P"))
            return;
        step at{in, in->decl->getBody(), call, {}, {}, {}, {}};
        half made = start;
        made.place = in->place(call);
        made.is_counted = false;
        made.is_sent = known->tag >= 0;
        made.tag = tag_of({{at}, known}, made.is_sent ? known->tag : known->other_tag);
        (made.is_sent ? sent : received).push_back(made);
    });
    sent.insert(sent.end(), received.begin(), received.end());
    return sent;
}

/* Each message that is sent in an iteration is received in it. */
class matching {
  public:
    explicit matching(const halves &all) : all_(all)
    {
        for (const auto &one : all)
            (one.is_sent ? sent_ : received_)[one.when][one.tag].push_back(&one);
        find();
    }

    const findings &found() const { return found_; }
    /* What is taken to be received although that was not worked out; only if nothing is found. */
    const findings &assumed() const { return assumed_; }

  private:
    using by_tag = std::map<std::string, std::vector<const half *>>;
    using by_conditions = std::map<conditions, by_tag>;

    void find()
    {
        compare(sent_, received_, true);
        compare(received_, sent_, false);
        for (const auto *each : {&sent_, &received_})
            for (const auto &[when, tags] : *each)
                compare_sides(when, tags);
        if (found_.empty())
            for (const auto &[when, tags] : sent_)
                count(tags, received_[when]);
    }

    void compare(by_conditions &these, by_conditions &others, bool are_sent)
    {
        std::set<std::string> told;
        for (const auto &[when, tags] : these)
            for (const auto &[tag, all] : tags) {
                const auto &there = others[when];
                const bool is_there = tag == kAny
                                          ? !there.empty()
                                          : there.count(tag) || (are_sent && there.count(kAny)) ||
                                                (is_computed(tag) && are_pairs(tags, there));
                if ((tag == kNotDecided || !is_there) && told.insert(tag).second)
                    found_.push_back({all.front()->place, reason(tag, are_sent)});
            }
    }

    template <typename Is>
    static bool are_all(const by_tag &tags, Is is)
    {
        return std::all_of(tags.begin(), tags.end(), [&](const auto &each) {
            return std::all_of(each.second.begin(), each.second.end(), is);
        });
    }

    /* Computed tags that are not on both sides, as that of the sender and of whom it comes from. If
     * they are the same in each iteration, and as many messages are sent as received, one that is
     * on its way at the end has been so at the beginning. */
    static bool are_pairs(const by_tag &these, const by_tag &others)
    {
        const auto left_of = [](const by_tag &some, const by_tag &without) {
            by_tag left;
            for (const auto &each : some)
                if (is_computed(each.first) && !without.count(each.first))
                    left.insert(each);
            return left;
        };
        const auto number_in = [](const by_tag &some) {
            std::size_t all = 0;
            for (const auto &each : some)
                all += each.second.size();
            return all;
        };
        const auto mine = left_of(these, others), theirs = left_of(others, these);
        const auto is_plain = [](auto *one) { return one->is_fixed && one->is_counted; };
        return number_in(mine) == number_in(theirs) && are_all(mine, is_plain) &&
               are_all(theirs, is_plain);
    }

    /* What one rank decides in an iteration another may decide otherwise: all is balanced only if
     * it makes no difference. */
    void compare_sides(const conditions &when, const by_tag &tags)
    {
        for (const auto &condition : when) {
            if (condition.compare(0, kByRank.size(), kByRank) != 0 ||
                are_all(tags, [](auto *one) { return one->is_exchange; }))
                continue;
            auto other = condition;
            const bool is_then = condition.compare(kByRank.size(), 4, "then") == 0;
            other.replace(kByRank.size(), 4, is_then ? "else" : "then");
            auto elsewhere = when;
            elsewhere.erase(condition);
            elsewhere.insert(other);
            if (is_alike(sent_, when, elsewhere) && is_alike(received_, when, elsewhere))
                continue;
            if (found_.empty())
                found_.push_back({tags.begin()->second.front()->place,
                                  "could not decide whether a message is on its way: ranks may "
                                  "come here in different iterations" +
                                      with_tag(tags.begin()->first)});
        }
    }

    static bool is_alike(const by_conditions &all, const conditions &a, const conditions &b)
    {
        const auto one = all.find(a), other = all.find(b);
        if (one == all.end() || other == all.end())
            return one == other;
        return std::equal(one->second.begin(), one->second.end(), other->second.begin(),
                          other->second.end(), [](const auto &x, const auto &y) {
                              return x.first == y.first && x.second.size() == y.second.size();
                          });
    }

    std::string reason(const std::string &tag, bool is_sent) const
    {
        const std::string done = is_sent ? "sent" : "received",
                          undone = is_sent ? "received" : "sent";
        const std::string undecided = "could not decide whether a message is on its way: it is " +
                                      done + " in this loop, and ";
        const auto others = [&](auto is) {
            return std::any_of(all_.begin(), all_.end(), [&](const half &one) {
                return one.is_sent != is_sent && is(one.tag);
            });
        };
        if (is_computed(tag))
            return undecided + "its tag is computed, and not by the same expression where one is " +
                   undone;
        if (others([&](const auto &other) { return other == tag || other == kAny || tag == kAny; }))
            return undecided + "not known to be " + undone +
                   " in the same iterations of it: its tag is " + tag;
        if (others(is_computed))
            return undecided + "tags of what is " + undone + " in it are computed: its tag is " +
                   tag;
        return "a message is " + done + " in this loop, and " + undone +
               " outside of it: its tag is " + tag;
    }

    using calls = std::vector<const half *>;

    /* As often as it is sent, where it can be told how often that is. */
    void count(const by_tag &sent, const by_tag &received)
    {
        calls all_sent, all_received;
        for (const auto &[tag, some] : sent) {
            all_sent.insert(all_sent.end(), some.begin(), some.end());
            if (received.count(kAny))
                continue;
            if (const auto there = received.find(tag); there != received.end())
                expect_as_many(some, there->second);
            else
                assumed_.push_back({some.front()->place,
                                    "another tag is taken for that of what is received: in each "
                                    "iteration as many are" +
                                        with_tag(tag)});
        }
        for (const auto &[tag, some] : received)
            all_received.insert(all_received.end(), some.begin(), some.end());
        if (received.count(kAny))
            expect_as_many(all_sent, all_received);
    }

    void expect_as_many(const calls &sent, const calls &received)
    {
        const auto are_counted = [](const calls &all) {
            return std::all_of(all.begin(), all.end(), [](auto *one) { return one->is_counted; });
        };
        if (!are_counted(sent) || !are_counted(received)) {
            if (decided_by(sent) != decided_by(received))
                assumed_.push_back({sent.front()->place,
                                    "how often it is sent and received is not compared, as that is "
                                    "no number" +
                                        with_tag(sent.front()->tag)});
        } else if (sent.size() != received.size())
            found_.push_back(
                {sent.front()->place, "messages are sent " + std::to_string(sent.size()) +
                                          " times in an iteration of this loop, and received " +
                                          std::to_string(received.size()) + " times" +
                                          with_tag(sent.front()->tag)});
    }

    /* Where this is the same of two, they are run equally often, however often that is. */
    static std::multiset<conditions> decided_by(const calls &all)
    {
        std::multiset<conditions> each;
        for (const auto *one : all)
            each.insert(one->besides);
        return each;
    }

    const halves &all_;
    by_conditions sent_, received_;
    findings found_, assumed_;
};

/* One of two halves is run where the other one is not: by other ranks. */
bool exclude_each_other(const half &a, const half &b)
{
    return std::any_of(a.branches.begin(), a.branches.end(), [&](const auto &branch) {
        const auto other = b.branches.find(branch.first);
        return other != b.branches.end() && other->second != branch.second;
    });
}

enum class reception { none, by_order, counted };

/* Is the last message of a tag that is sent in @front, which is run once, received there? What
 * sends may be run by other ranks than what receives, so that often only the order of the text
 * tells. A computed tag is received with the same expression, or with one that nothing there sends.
 */
reception received_in(const halves &front, std::size_t last)
{
    const auto &sent = front[last];
    const auto has_tag = [&](const std::string &tag, bool is_sent) {
        return std::any_of(front.begin(), front.end(), [&](const half &one) {
            return one.is_sent == is_sent && one.tag == tag;
        });
    };
    std::ptrdiff_t balance = 0;
    std::map<conditions, std::ptrdiff_t> balances; /* by what decides besides */
    bool is_counted = true, is_there = false, is_of_tag = true;
    for (std::size_t i = 0; i < front.size(); i++) {
        const auto &one = front[i];
        if (one.is_sent ? one.tag == sent.tag : may_be_same(sent.tag, one.tag)) {
            is_counted &= one.is_counted && one.tag == sent.tag;
            is_of_tag &= one.tag == sent.tag && one.when == sent.when;
            balance += one.is_sent ? 1 : -1;
            balances[one.besides] += one.is_sent ? 1 : -1;
        }
        const bool is_its =
            one.tag != kNotDecided && (one.tag == sent.tag || one.tag == kAny ||
                                       (is_computed(sent.tag) && is_computed(one.tag) &&
                                        !has_tag(sent.tag, false) && !has_tag(one.tag, true)));
        is_there |= !one.is_sent && is_its && (i > last || exclude_each_other(sent, one));
    }
    if (is_counted)
        return balance == 0 ? reception::counted : reception::none;
    if (!is_there)
        return reception::none;
    const bool is_balanced =
        is_of_tag && std::all_of(balances.begin(), balances.end(),
                                 [](const auto &each) { return each.second == 0; });
    return is_balanced ? reception::counted : reception::by_order;
}

/* A message that is sent in front of the loop, and not received there, is on its way in all of it;
 * or another is, each time, if the loop first receives and then sends the next. */
judgement sent_before(const halves &front, const halves &later)
{
    judgement all;
    std::set<std::string> told;
    for (std::size_t i = front.size(); i-- > 0;) {
        const auto &one = front[i];
        if (!one.is_sent || !told.insert(one.tag).second)
            continue;
        const auto how = received_in(front, i);
        if (how == reception::counted ||
            std::none_of(later.begin(), later.end(), [&](const half &other) {
                return !other.is_sent && may_be_same(one.tag, other.tag);
            }))
            continue;
        if (how == reception::none)
            all.refused.push_back({one.place, "a message is sent in front of this loop, and "
                                              "received in or behind it" +
                                                  with_tag(one.tag)});
        else
            all.assumed.push_back(
                {one.place, "only the order of the text tells that it is received "
                            "in front of this loop, too" +
                                with_tag(one.tag)});
    }
    return all;
}

void append(findings &to, const findings &more, const std::string &where)
{
    for (auto one : more) {
        one.reason += where;
        if (std::find(to.begin(), to.end(), one) == to.end())
            to.push_back(one);
    }
}

} // namespace

judgement messages::judge(const loop &one) const
{
    judgement all;
    const auto add = [&](const traffic &what, const halves &part, const std::string &where) {
        const matching matched(part);
        append(all.refused, what.found(), where);
        append(all.refused, matched.found(), where);
        append(all.assumed, what.assumed(), where);
        append(all.assumed, matched.assumed(), where);
    };
    const traffic inside(program_, calls_, used_, equal_, one, one);
    add(inside, inside.all(), "");
    const auto outer = loops_around(one);
    halves later = inside.all();
    for (const auto &each : outer) {
        const std::string where = " (of the loop around it, " + each.place + ")";
        const traffic around(program_, calls_, used_, equal_, each, one);
        add(around, around.front(), where);
        add(around, around.all(), where);
        later.insert(later.end(), around.all().begin(), around.all().end());
    }
    const traffic once(program_, calls_, used_, equal_, *one.way.front().in,
                       outer.empty() ? one : outer.front());
    const auto behind = once.behind();
    later.insert(later.end(), behind.begin(), behind.end());
    const auto before = sent_before(once.front(), later);
    append(all.refused, once.found(), "");
    append(all.refused, before.refused, "");
    append(all.assumed, before.assumed, "");
    return all;
}

} // namespace zc::instrument
