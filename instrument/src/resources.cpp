/* SPDX-License-Identifier: BSD-3-Clause */
#include "resources.h"

#include "assignments.h"
#include "forward_flow.h"
#include "layout.h"

#include <algorithm>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::isa_and_nonnull;

namespace {

const char *what_opened(char letter)
{
    switch (letter) {
    case 'R':
    case 'S':
    case 'T':
        return "a request may be active";
    case 'F':
        return "a file may be open";
    case 'M':
        return "a file of MPI-IO may be open";
    default:
        return "a window may exist";
    }
}

const std::string kUnknown = "?";

std::string without_index(const std::string &key)
{
    return key.substr(0, key.find('['));
}

void close_key(const std::string &key, std::map<std::string, finding> &open)
{
    for (auto it = open.begin(); it != open.end();)
        it = it->first == key || without_index(it->first) == key ? open.erase(it) : std::next(it);
}

/* The variable that is a FILE *, and NULL, on the way from @block to its successor @number. A field
 * may be that of another struct. */
const clang::Expr *null_stream(const function &in, const clang::CFGBlock &block, unsigned number)
{
    const auto *condition = block.succ_size() == 2 ? block.getLastCondition() : nullptr;
    bool holds = number == 0, is_null = false;
    while (condition) {
        condition = condition->IgnoreParenImpCasts();
        const auto *op = dyn_cast<clang::UnaryOperator>(condition);
        if (!op || op->getOpcode() != clang::UO_LNot)
            break;
        holds = !holds;
        condition = op->getSubExpr();
    }
    if (!condition)
        return nullptr;
    if (const auto *both = dyn_cast<clang::BinaryOperator>(condition);
        both && both->isEqualityOp()) {
        const auto is_constant = [&](const clang::Expr *value) {
            return value->IgnoreParenImpCasts()->isNullPointerConstant(
                       in.context(), clang::Expr::NPC_ValueDependentIsNotNull) !=
                   clang::Expr::NPCK_NotNull;
        };
        const bool is_right = is_constant(both->getRHS());
        if (is_right == is_constant(both->getLHS()))
            return nullptr;
        is_null = (both->getOpcode() == clang::BO_EQ) == holds;
        condition = is_right ? both->getLHS() : both->getRHS();
    } else {
        is_null = !holds;
    }
    condition = condition->IgnoreParenImpCasts();
    if (const auto *op = dyn_cast<clang::BinaryOperator>(condition);
        op && op->getOpcode() == clang::BO_Assign)
        condition = op->getLHS()->IgnoreParenImpCasts();
    return is_null && llvm::isa<clang::DeclRefExpr>(condition) &&
                   resources::is_stream(condition->getType())
               ? condition
               : nullptr;
}

/* Calls whose results @value may be. */
std::vector<const clang::CallExpr *> results_in(const clang::Expr *value)
{
    value = value ? value->IgnoreParenCasts() : nullptr;
    if (!value)
        return {};
    if (const auto *call = dyn_cast<clang::CallExpr>(value))
        return {call};
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(value)) {
        auto found = results_in(choice->getTrueExpr());
        const auto other = results_in(choice->getFalseExpr());
        found.insert(found.end(), other.begin(), other.end());
        return found;
    }
    if (const auto *choice = dyn_cast<clang::BinaryConditionalOperator>(value)) {
        auto found = results_in(choice->getCommon());
        const auto other = results_in(choice->getFalseExpr());
        found.insert(found.end(), other.begin(), other.end());
        return found;
    }
    const auto *op = dyn_cast<clang::BinaryOperator>(value);
    return op && (op->getOpcode() == clang::BO_Comma || op->getOpcode() == clang::BO_Assign)
               ? results_in(op->getRHS())
               : std::vector<const clang::CallExpr *>();
}

} // namespace

std::string resources::base_of(const function &in, const clang::Expr *argument, std::string *index)
{
    for (;;) {
        argument = argument->IgnoreParenCasts();
        if (const auto *op = dyn_cast<clang::UnaryOperator>(argument)) {
            argument = op->getSubExpr();
        } else if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(argument)) {
            clang::Expr::EvalResult value;
            if (index && index->empty())
                *index = subscript->getIdx()->EvaluateAsInt(value, in.context())
                             ? std::to_string(value.Val.getInt().getExtValue())
                             : kUnknown;
            argument = subscript->getBase();
        } else if (const auto *sum = dyn_cast<clang::BinaryOperator>(argument)) {
            if (index)
                *index = kUnknown;
            argument = sum->getLHS()->getType()->isPointerType() ? sum->getLHS() : sum->getRHS();
            if (!sum->isAdditiveOp())
                return kUnknown;
        } else if (const auto *member = dyn_cast<clang::MemberExpr>(argument)) {
            const auto *field = dyn_cast<clang::FieldDecl>(member->getMemberDecl());
            return field ? program::key(field) : kUnknown;
        } else if (const auto *reference = dyn_cast<clang::DeclRefExpr>(argument)) {
            const auto *variable = dyn_cast<clang::VarDecl>(reference->getDecl());
            return variable ? program::key(variable) : kUnknown;
        } else {
            return kUnknown;
        }
    }
}

bool resources::is_stream(clang::QualType type)
{
    const auto *record =
        type->isPointerType() ? type->getPointeeType()->getAsRecordDecl() : nullptr;
    return record && record->getNameAsString() == "_IO_FILE";
}

/* @others: what may be another stream. */
bool resources::is_standard(const function &in, const clang::Expr *value,
                            const std::set<std::string> &others) const
{
    value = value->IgnoreParenCasts();
    clang::Expr::EvalResult number;
    if (llvm::isa<clang::ImplicitValueInitExpr>(value))
        return true;
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(value))
        return is_standard(in, choice->getTrueExpr(), others) &&
               is_standard(in, choice->getFalseExpr(), others);
    if (value->getType()->isIntegerType())
        return value->EvaluateAsInt(number, in.context()) && number.Val.getInt() == 0;
    if (!is_stream(value->getType()))
        return false;
    if (const auto *reference = dyn_cast<clang::DeclRefExpr>(value))
        if (const auto name = reference->getDecl()->getName();
            (name == "stdout" || name == "stderr") && !program_.globals().count(name.str()))
            return true;
    const auto *reference = dyn_cast<clang::DeclRefExpr>(value);
    if (const auto *variable = reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
        variable && variable->hasExternalStorage() &&
        !program_.globals().count(program::key(variable)))
        return false;
    return llvm::isa<clang::DeclRefExpr, clang::MemberExpr>(value) &&
           !others.count(base_of(in, value, nullptr));
}

std::vector<clang::QualType> resources::pointees_of(const clang::Expr *pointer)
{
    pointer = pointer->IgnoreParenCasts();
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(pointer)) {
        auto found = pointees_of(choice->getTrueExpr());
        const auto other = pointees_of(choice->getFalseExpr());
        found.insert(found.end(), other.begin(), other.end());
        return found;
    }
    if (const auto *op = dyn_cast<clang::BinaryOperator>(pointer)) {
        if (op->getOpcode() == clang::BO_Comma)
            return pointees_of(op->getRHS());
        const auto left = op->getLHS()->getType();
        if (op->isAdditiveOp())
            return pointees_of(left->isPointerType() || left->isArrayType() ? op->getLHS()
                                                                            : op->getRHS());
    }
    const auto type = pointer->getType();
    if (type->isPointerType())
        return {type->getPointeeType()};
    return {type};
}

/* Keys of the fields that are a FILE *. */
void resources::add_streams_of(clang::QualType type, std::set<std::string> &to) const
{
    while (const auto *array = type->getAsArrayTypeUnsafe())
        type = array->getElementType();
    const auto *record = program_.definition_of(type->getAsRecordDecl());
    if (!record || record->getNameAsString() == "_IO_FILE")
        return;
    for (const auto *member : record->fields()) {
        if (is_stream(layouts::element_of(record->getASTContext(), member->getType())))
            to.insert(program::key(member));
        add_streams_of(member->getType(), to);
    }
}

/* What may get a value that is not seen: by its address, or as a part of other memory. */
void resources::find_escaping_streams(const function &in, const clang::Stmt *each,
                                      std::set<std::string> &others) const
{
    if (const auto *op = dyn_cast<clang::UnaryOperator>(each);
        op && op->getOpcode() == clang::UO_AddrOf &&
        is_stream(layouts::element_of(in.context(), op->getSubExpr()->getType())))
        others.insert(key_of_object(op->getSubExpr()));
    const auto *cast = dyn_cast<clang::CastExpr>(each);
    if (cast && cast->getCastKind() == clang::CK_ArrayToPointerDecay &&
        is_stream(layouts::element_of(in.context(), cast->getSubExpr()->getType())) &&
        !isa_and_nonnull<clang::ArraySubscriptExpr>(
            in.parents->getParentIgnoreParens(const_cast<clang::CastExpr *>(cast))))
        others.insert(key_of_object(cast->getSubExpr()));
    if (cast && cast->getCastKind() == clang::CK_BitCast && cast->getType()->isPointerType()) {
        const auto *call = dyn_cast_or_null<clang::CallExpr>(
            in.parents->getParentIgnoreParenCasts(const_cast<clang::CastExpr *>(cast)));
        const auto *callee = call ? callee_of(call) : nullptr;
        const bool is_known =
            callee && !program_.find(callee) && find_known(callee->getNameAsString());
        for (const auto type : pointees_of(cast))
            if (!is_known &&
                !in.context().hasSameUnqualifiedType(type, cast->getType()->getPointeeType()))
                add_streams_of(type, others);
    }
    const auto *call = dyn_cast<clang::CallExpr>(each);
    const auto *callee = call ? callee_of(call) : nullptr;
    const std::string name = callee ? callee->getNameAsString() : "";
    if ((name.find("memcpy") == std::string::npos && name.find("memmove") == std::string::npos) ||
        call->getNumArgs() < 2)
        return;
    for (auto to : pointees_of(call->getArg(0)))
        for (auto from : pointees_of(call->getArg(1))) {
            to = layouts::element_of(in.context(), to);
            from = layouts::element_of(in.context(), from);
            if (!in.context().hasSameUnqualifiedType(to, from))
                add_streams_of(to, others);
        }
}

/* All that gives a value to a FILE *: what comes from anywhere but the two of them that are written
 * to is another one. */
void resources::find_streams()
{
    std::set<std::string> others{kUnknown, ""};
    const auto assignments = assignments_of(program_);
    for (std::size_t before = 0; before != others.size();) {
        before = others.size();
        for (const auto &one : assignments) {
            if (!one.in || !is_stream(one.type))
                continue;
            streams_.insert(one.key);
            if (!is_standard(*one.in, one.value, others))
                others.insert(one.key);
        }
        for_each_statement(program_, [&](const function *in, const clang::Stmt *each) {
            if (each)
                find_escaping_streams(*in, each, others);
        });
    }
    for (const auto &key : others)
        streams_.erase(key);
    for (const auto &[key, variable] : program_.globals())
        if (variable->getInit())
            streams_.erase(key);
}

/* Requests that are made persistent, and all that gets one, or leads to one, by an assignment, as
 * an argument, or from a function. */
void resources::find_persistent()
{
    for_each_statement(program_, [&](const function *in, const clang::Stmt *each) {
        const auto *call = dyn_cast_or_null<clang::CallExpr>(each);
        const auto *callee = call ? callee_of(call) : nullptr;
        const auto *known = callee ? find_known(callee->getNameAsString()) : nullptr;
        for (unsigned i = 0; known && i < call->getNumArgs(); i++)
            if (known->effect(i) == 'P')
                persistent_.insert(base_of(*in, call->getArg(i), nullptr));
    });
    if (persistent_.empty())
        return;
    const auto is_request = [](clang::QualType type) {
        while (type->isPointerType() && layouts::opaque(type).empty())
            type = type->getPointeeType();
        const auto *array = type->getAsArrayTypeUnsafe();
        return layouts::opaque(array ? array->getElementType() : type) == "MPI_Request";
    };
    const auto assignments = assignments_of(program_);
    for (std::size_t before = 0; before != persistent_.size();) {
        before = persistent_.size();
        for (const auto &one : assignments) {
            if (!one.in || !is_request(one.type))
                continue;
            const bool is_pointer = layouts::opaque(one.type).empty();
            const auto to = one.to ? base_of(*one.in, one.to, nullptr) : one.key;
            const auto *call = dyn_cast<clang::CallExpr>(one.value->IgnoreParenCasts());
            std::set<std::string> from;
            if (!call)
                from.insert(base_of(*one.in, one.value, nullptr));
            else
                for (const auto *callee : called_by(program_, call))
                    from.insert(callee->name + "()");
            for (const auto &key : from) {
                if (key == kUnknown)
                    continue;
                if (persistent_.count(key))
                    persistent_.insert(to);
                if (is_pointer && persistent_.count(to))
                    persistent_.insert(key);
            }
        }
    }
}

resources::resources(const program &all) : program_(all)
{
    find_streams();
    find_persistent();
    for (bool changes = true; changes;) {
        changes = false;
        for (const auto &[name, one] : all.functions()) {
            auto now = summarise(one);
            auto &known = summaries_[name];
            if (now.opens.size() != known.opens.size() || now.closes != known.closes) {
                known = std::move(now);
                changes = true;
            }
        }
    }
}

void resources::call_known(const function &in, const clang::CallExpr *call,
                           const known_call &callee, open_set &open) const
{
    for (unsigned i = 0; i < call->getNumArgs(); i++) {
        const char letter = callee.effect(i);
        if (std::string_view("RSTMNWAfmn").find(letter) == std::string_view::npos)
            continue;
        std::string index;
        const auto key = base_of(in, call->getArg(i), &index);
        if (std::string_view("RSTMN").find(letter) != std::string_view::npos) {
            const auto full = letter == 'T' || index.empty() ? key : key + "[" + index + "]";
            open.try_emplace(full, finding{in.place(call), std::string(what_opened(letter)) +
                                                               " that " + std::string(callee.name) +
                                                               "() has made, and that is not "
                                                               "completed on every path"});
        } else if (letter == 'W' && !index.empty()) {
            if (index != kUnknown)
                open.erase(key + "[" + index + "]");
        } else {
            close_key(key, open);
        }
    }
}

/* Keys of parameters become those of the arguments. */
void resources::call_own(const function &in, const clang::CallExpr *call, const function &callee,
                         open_set &open) const
{
    const auto found = summaries_.find(callee.name);
    if (found == summaries_.end())
        return;
    std::map<std::string, std::string> arguments;
    for (unsigned i = 0; i < call->getNumArgs() && i < callee.decl->getNumParams(); i++)
        arguments[program::key(callee.decl->getParamDecl(i))] =
            base_of(in, call->getArg(i), nullptr);
    const auto here = [&](const std::string &key) {
        const auto base = without_index(key);
        const auto argument = arguments.find(base);
        return argument == arguments.end() ? key : argument->second + key.substr(base.size());
    };
    for (const auto &key : found->second.closes)
        close_key(here(key), open);
    for (const auto &[key, where] : found->second.opens)
        open.try_emplace(here(key), where);
}

/* if (f != stdout) fclose(f): on the other way f is no file that was opened. */
void resources::close_unless_standard(const function &in, const clang::Stmt *at, open_set &open)
{
    const auto *differs = dyn_cast<clang::BinaryOperator>(at);
    if (!differs || differs->getOpcode() != clang::BO_NE)
        return;
    const auto *choice = dyn_cast_or_null<clang::IfStmt>(
        in.parents->getParentIgnoreParens(const_cast<clang::BinaryOperator *>(differs)));
    if (!choice || choice->getElse())
        return;
    const auto is_standard_name = [](const clang::Expr *value) {
        const auto *reference = dyn_cast<clang::DeclRefExpr>(value->IgnoreParenImpCasts());
        const auto name = reference ? reference->getDecl()->getName() : "";
        return name == "stdout" || name == "stderr";
    };
    const auto *stream = is_standard_name(differs->getRHS())   ? differs->getLHS()
                         : is_standard_name(differs->getLHS()) ? differs->getRHS()
                                                               : nullptr;
    const auto *then = choice->getThen();
    if (const auto *block = dyn_cast<clang::CompoundStmt>(then))
        then = block->body_empty() ? nullptr : block->body_back();
    const auto *call = dyn_cast_or_null<clang::CallExpr>(then);
    const auto *callee = call ? callee_of(call) : nullptr;
    if (!stream || !callee || callee->getName() != "fclose" || call->getNumArgs() != 1)
        return;
    const auto key = base_of(in, stream, nullptr);
    if (key != kUnknown && key == base_of(in, call->getArg(0), nullptr))
        close_key(key, open);
}

void resources::step(const function &in, const clang::Stmt *at, open_set &open) const
{
    const auto opens_file = [&](const clang::Expr *value, const std::string &key) {
        for (const auto *call : results_in(value)) {
            const auto *callee = callee_of(call);
            if (callee && callee->getNameAsString() == "fopen")
                open.try_emplace(key, finding{in.place(call), what_opened('F')});
            /* What a function of the program has opened and returns is the caller's. */
            const auto *own = program_.find(callee);
            const auto returned = own ? open.find(own->name + "()") : open.end();
            if (returned != open.end()) {
                open.try_emplace(key, returned->second);
                open.erase(own->name + "()");
            }
        }
    };
    if (const auto *end = dyn_cast<clang::ReturnStmt>(at); end && end->getRetValue()) {
        opens_file(end->getRetValue(), in.name + "()");
        if (is_stream(end->getRetValue()->getType()))
            if (const auto own = open.find(base_of(in, end->getRetValue(), nullptr));
                own != open.end()) {
                const auto where = own->second;
                open.erase(own);
                open.try_emplace(in.name + "()", where);
            }
    }
    close_unless_standard(in, at, open);
    if (const auto *op = dyn_cast<clang::BinaryOperator>(at); op && op->isAssignmentOp())
        opens_file(op->getRHS(), base_of(in, op->getLHS(), nullptr));
    if (const auto *declaration = dyn_cast<clang::DeclStmt>(at))
        for (const auto *decl : declaration->decls())
            if (const auto *variable = dyn_cast<clang::VarDecl>(decl))
                opens_file(variable->getInit(), program::key(variable));
    const auto *call = dyn_cast<clang::CallExpr>(at);
    if (!call)
        return;
    for (const auto *callee : called_by(program_, call))
        call_own(in, call, *callee, open);
    const auto *callee = callee_of(call);
    if (const auto *known = callee ? find_known(callee->getNameAsString()) : nullptr)
        call_known(in, call, *known, open);
}

std::map<unsigned, resources::open_set> resources::at_entries(const function &in,
                                                              const open_set &first) const
{
    return forward_flow(
        *in.cfg, first,
        [&](const clang::CFGBlock &block, open_set &open) {
            for (const auto &element : block)
                if (const auto statement = element.getAs<clang::CFGStmt>())
                    step(in, statement->getStmt(), open);
        },
        [&](const clang::CFGBlock &block, unsigned successor, open_set open) {
            if (const auto *stream = null_stream(in, block, successor))
                close_key(base_of(in, stream, nullptr), open);
            return open;
        });
}

resources::summary resources::summarise(const function &one) const
{
    summary found;
    const auto exit = one.cfg->getExit().getBlockID();
    const auto from_none = at_entries(one, {});
    if (const auto end = from_none.find(exit); end != from_none.end())
        found.opens = end->second;
    /* Were all that it names open: what of it is not at the end? */
    open_set all;
    for_each_statement(one.decl->getBody(), [&](const clang::Stmt *each) {
        const auto *call = dyn_cast_or_null<clang::CallExpr>(each);
        if (!call)
            return;
        for (const auto *argument : call->arguments()) {
            std::string index;
            const auto key = base_of(one, argument, &index);
            all.try_emplace(key);
            if (!index.empty() && index != kUnknown)
                all.try_emplace(key + "[" + index + "]");
        }
        for (const auto *callee : called_by(program_, call))
            if (const auto known = summaries_.find(callee->name); known != summaries_.end())
                for (const auto &key : known->second.closes)
                    all.try_emplace(key);
    });
    const auto from_all = at_entries(one, all);
    const auto end = from_all.find(exit);
    for (const auto &[key, where] : all)
        if (end == from_all.end() || !end->second.count(key))
            found.closes.insert(key);
    return found;
}

findings resources::open_at(const loop &one) const
{
    open_set open;
    for (const auto &[in, call] : one.way) {
        const auto entries = at_entries(*in, open);
        open.clear();
        for (const auto *block : *in->cfg) {
            const auto begin = entries.find(block->getBlockID());
            if (begin == entries.end())
                continue;
            auto here = begin->second;
            for (const auto &element : *block)
                if (const auto statement = element.getAs<clang::CFGStmt>()) {
                    if (call && statement->getStmt() == call)
                        open.insert(here.begin(), here.end());
                    step(*in, statement->getStmt(), here);
                }
            if (!call && block->getTerminatorStmt() == one.statement) {
                open.insert(here.begin(), here.end());
                /* Before the first test of a do loop its body has run once. */
                if (const auto *body = block->succ_begin()->getReachableBlock())
                    if (const auto first = entries.find(body->getBlockID()); first != entries.end())
                        open.insert(first->second.begin(), first->second.end());
            }
        }
    }
    findings found;
    for (const auto &[key, where] : open)
        found.push_back(where);
    return found;
}

} // namespace zc::instrument
