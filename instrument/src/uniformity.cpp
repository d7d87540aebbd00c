/* SPDX-License-Identifier: BSD-3-Clause */
#include "uniformity.h"

#include "control.h"
#include "datatypes.h"
#include "forward_flow.h"
#include "known_values.h"
#include "layout.h"
#include "resources.h"

#include <algorithm>
#include <functional>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::isa;
using llvm::isa_and_nonnull;

namespace {

bool is_communicator(clang::QualType type)
{
    return layouts::opaque(type) == "MPI_Comm";
}

bool is_local(const clang::Expr *object)
{
    const auto *reference = dyn_cast<clang::DeclRefExpr>(object->IgnoreParens());
    const auto *variable = reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
    return variable && variable->hasLocalStorage();
}

/* What a parameter leads to is called as that is. Empty: what another pointer leads to. */
std::string communicator_key(const clang::Expr *object)
{
    object = object->IgnoreParenImpCasts();
    const auto *op = dyn_cast<clang::UnaryOperator>(object);
    const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(object);
    const auto *pointer = op && op->getOpcode() == clang::UO_Deref ? op->getSubExpr()
                          : subscript                              ? subscript->getBase()
                                                                   : nullptr;
    pointer = pointer ? pointer->IgnoreParenImpCasts() : nullptr;
    if (!pointer || pointer->getType()->isArrayType())
        return key_of_object(object);
    const auto *reference = dyn_cast<clang::DeclRefExpr>(pointer);
    const auto *parameter =
        reference ? dyn_cast<clang::ParmVarDecl>(reference->getDecl()) : nullptr;
    return parameter ? program::key(parameter) : "";
}

/* As the keys of its fields have it. */
std::string name_of(const clang::RecordDecl *record)
{
    record = record ? record->getDefinition() : nullptr;
    if (!record || record->field_empty())
        return {};
    const auto key = program::key(*record->field_begin());
    return key.substr(0, key.rfind('.'));
}

bool is_repeated(const function &in, const clang::Stmt *at)
{
    for (const auto *up = in.parents->getParent(at); up; up = in.parents->getParent(up)) {
        const auto *once = dyn_cast<clang::DoStmt>(up);
        clang::Expr::EvalResult value;
        if (body_of(up) && !(once && once->getCond()->EvaluateAsInt(value, in.context()) &&
                             value.Val.getInt() == 0))
            return true;
    }
    bool has_labels = false;
    for_each_statement(in.decl->getBody(), [&](const clang::Stmt *each) {
        has_labels |= isa_and_nonnull<clang::LabelStmt>(each);
    });
    return has_labels;
}

/* Is it a call that is given the size of a type? */
bool is_call_with_size(const clang::Expr *value)
{
    bool found = false;
    if (const auto *call = dyn_cast<clang::CallExpr>(value->IgnoreParenCasts()))
        for_each_statement(call, [&found](const clang::Stmt *each) {
            found |= isa_and_nonnull<clang::UnaryExprOrTypeTraitExpr>(each);
        });
    return found;
}

/* All numbers among the arguments but @size are 1: it is that of one object. */
bool is_one(const function &in, const clang::CallExpr *call, const clang::Expr *size)
{
    return std::all_of(call->arg_begin(), call->arg_end(), [&](const clang::Expr *argument) {
        clang::Expr::EvalResult value;
        return argument == size || !argument->getType()->isIntegerType() ||
               (argument->EvaluateAsInt(value, in.context()) && value.Val.getInt() == 1);
    });
}

/* That it is a member of, or is, or leads to. */
const clang::RecordDecl *record_of(const clang::Expr *object)
{
    if (const auto *member = dyn_cast<clang::MemberExpr>(object))
        return dyn_cast<clang::RecordDecl>(member->getMemberDecl()->getDeclContext());
    const auto type = object->getType();
    return type->isPointerType() ? type->getPointeeType()->getAsRecordDecl()
                                 : type->getAsRecordDecl();
}

bool leads_to_struct(const clang::Expr *pointer)
{
    const auto type = pointer->IgnoreParenImpCasts()->getType();
    return (type->isPointerType() || type->isArrayType()) &&
           type->getPointeeOrArrayElementType()->isRecordType();
}

/* The array whose beginning @pointer is, if it is named; otherwise @pointer. */
const clang::Expr *array_of(const function &in, const clang::Expr *pointer)
{
    pointer = pointer->IgnoreParenCasts();
    const auto *address = dyn_cast<clang::UnaryOperator>(pointer);
    const auto *inner = address && address->getOpcode() == clang::UO_AddrOf
                            ? address->getSubExpr()->IgnoreParens()
                            : pointer;
    while (const auto *first = dyn_cast<clang::ArraySubscriptExpr>(inner)) {
        clang::Expr::EvalResult index;
        const auto *base = first->getBase()->IgnoreParenCasts();
        if (!base->getType()->isArrayType() ||
            !first->getIdx()->EvaluateAsInt(index, in.context()) || index.Val.getInt() != 0)
            return pointer;
        inner = base;
    }
    return inner->getType()->isArrayType() ? inner : pointer;
}

/* @value without what changes no number that is a length. */
const clang::Expr *without_widening(const function &in, const clang::Expr *value)
{
    constexpr unsigned kInt = 32; /* what MPI counts with, and arrays in memory are no longer */
    for (;;) {
        value = value->IgnoreParens();
        const auto *cast = dyn_cast<clang::CastExpr>(value);
        if (!cast || !cast->getType()->isIntegerType() ||
            !cast->getSubExpr()->getType()->isIntegerType())
            return value;
        const auto to = in.context().getIntWidth(cast->getType());
        if (to < kInt && to < in.context().getIntWidth(cast->getSubExpr()->getType()))
            return value;
        value = cast->getSubExpr();
    }
}

/* Which arguments these are is not followed. */
bool is_list_of_arguments(const clang::Expr *value)
{
    const auto *record = record_of(value->IgnoreParenImpCasts());
    const auto type = value->IgnoreParenImpCasts()->getType();
    const auto *of_array =
        type->isArrayType() ? type->getArrayElementTypeNoTypeQual()->getAsRecordDecl() : record;
    return of_array && of_array->getName() == "__va_list_tag";
}

/* A struct becomes another one of its type: what its fields are, they are known as. */
bool is_copy_of_struct(const function &in, const clang::CallExpr *call)
{
    const auto name = callee_of(call)->getName();
    if ((name.find("memcpy") == llvm::StringRef::npos &&
         name.find("memmove") == llvm::StringRef::npos) ||
        call->getNumArgs() < 2)
        return false;
    const auto to = resources::pointees_of(call->getArg(0)),
               from = resources::pointees_of(call->getArg(1));
    return to.size() == 1 && from.size() == 1 && to.front()->isRecordType() &&
           in.context().hasSameUnqualifiedType(to.front(), from.front());
}

/* What is of this process, or of this moment: of others it differs, and of a successor. */
bool is_of_process(std::string_view name)
{
    static const std::set<std::string_view> names = {
        "access",          "fopen",        "time",    "clock",
        "clock_gettime",   "gettimeofday", "getpid",  "gethostname",
        "getenv",          "MPI_Wtime",    "rand",    "random",
        "drand48",         "lrand48",      "mrand48", "MPI_Get_processor_name",
        "__errno_location"};
    return names.count(name) > 0;
}

} // namespace

/* The keys of what @object, or what it points to, is. @is_whole: an assignment replaces all of it.
 */
std::vector<std::string> uniformity::keys_of(const clang::Expr *object, bool *is_whole)
{
    std::vector<std::string> keys;
    bool whole = true;
    const auto own = object->IgnoreParenImpCasts()->getType(); /* not that of a void * to it */
    const auto type = own->isPointerType() ? own->getPointeeType() : own;
    for (;;) {
        object = object->IgnoreParenCasts();
        if (const auto *op = dyn_cast<clang::UnaryOperator>(object)) {
            object = op->getSubExpr();
        } else if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(object)) {
            object = subscript->getBase();
            whole = false;
        } else if (const auto *sum = dyn_cast<clang::BinaryOperator>(object)) {
            object =
                sum->getLHS()->getType()->isPointerType() || sum->getLHS()->getType()->isArrayType()
                    ? sum->getLHS()
                    : sum->getRHS();
            whole = false;
        } else if (const auto *member = dyn_cast<clang::MemberExpr>(object)) {
            if (const auto *field = dyn_cast<clang::FieldDecl>(member->getMemberDecl()))
                keys.push_back(program::key(field));
            break;
        } else if (const auto *reference = dyn_cast<clang::DeclRefExpr>(object)) {
            if (const auto *variable = dyn_cast<clang::VarDecl>(reference->getDecl()))
                keys.push_back(program::key(variable));
            break;
        } else {
            break;
        }
    }
    std::set<std::string> fields;
    add_fields(type->getAsRecordDecl(), fields);
    keys.insert(keys.end(), fields.begin(), fields.end());
    if (is_whole)
        *is_whole = whole;
    return keys;
}

/* Is it a variable of one call of @one, so that no other function, and no other call, names it? */
bool uniformity::is_of_call(const std::string &key, const function &one) const
{
    return key.rfind(one.name + ":", 0) == 0 && !statics_.count(key);
}

uniformity::uniformity(const program &all, const call_graph &calls, const accesses &used,
                       const std::vector<assignment> &assignments, const pointers &led,
                       between what, const loop *at)
    : program_(all), calls_(calls), used_(used), what_(what), assignments_(assignments),
      pointers_(led), at_(at)
{
    count_instances();
    find_parts();
    find_inputs();
    order_functions();
    states_["main"].is_called = true;
    wait(*all.find("main"));
    while (!waiting_.empty()) {
        const auto *next = waiting_.begin()->second;
        waiting_.erase(waiting_.begin());
        rounds_++;
        run(*next);
    }
}

/* Those that are called have lower numbers than their callers. */
void uniformity::order_functions()
{
    std::size_t done = 0;
    const std::function<void(const function *)> enter = [&](const function *one) {
        if (!order_.try_emplace(one, 0).second)
            return;
        for_each_statement(one->decl->getBody(), [&](const clang::Stmt *each) {
            if (const auto *call = dyn_cast_or_null<clang::CallExpr>(each))
                for (const auto *callee : called_by(program_, call))
                    enter(callee);
        });
        order_[one] = ++done;
    };
    enter(program_.find("main"));
}

void uniformity::wait(const function &one)
{
    if (states_[one.name].is_called)
        waiting_.emplace(order_[&one], &one);
}

void uniformity::wait_for_callers(const function &one)
{
    for (const auto &site : calls_.callers_of(one))
        wait(*site.in);
}

bool uniformity::is_kept_parameter(const function &in, const clang::ParmVarDecl *parameter) const
{
    const auto [known, is_new] = kept_.try_emplace({&in, parameter}, false);
    if (is_new)
        known->second = is_kept(in, in.decl->getBody(), parameter);
    return known->second;
}

const std::set<std::string> &uniformity::targets_of(const function &in,
                                                    const clang::Expr *pointer) const
{
    const auto found = targets_.find(pointer);
    return found != targets_.end()
               ? found->second
               : targets_.emplace(pointer, pointers_.targets_of(in, pointer)).first->second;
}

/* May @in be called more than once? */
bool uniformity::is_called_again(const function &in, std::set<const function *> seen) const
{
    if (in.name == "main")
        return false;
    const auto &callers = calls_.callers_of(in);
    return !seen.insert(&in).second || callers.size() > 1 ||
           std::any_of(callers.begin(), callers.end(), [&](const auto &site) {
               return is_repeated(*site.in, site.call) || is_called_again(*site.in, seen);
           });
}

/* How many objects there may be, one or more, whose size @size is; none if it is only the size of
 * what a known function copies, clears or sends. */
int uniformity::allocated(const function &in, const clang::Expr *size) const
{
    constexpr int one = 1, several = 2;
    const clang::Stmt *child = size, *up = in.parents->getParent(size);
    for (; isa_and_nonnull<clang::CastExpr, clang::ParenExpr>(up); up = in.parents->getParent(up))
        child = up;
    const bool is_alone = isa_and_nonnull<clang::CallExpr>(up);
    for (; up && !isa<clang::CallExpr>(up); up = in.parents->getParent(up))
        child = up;
    const auto *call = dyn_cast_or_null<clang::CallExpr>(up);
    if (!call)
        return several;
    const auto *callee = callee_of(call);
    const auto *own = program_.find(callee);
    const auto *known = callee && !own ? find_known(callee->getNameAsString()) : nullptr;
    if (known && known->what != known_call::kind::allocates)
        return 0;
    if (!is_alone || (!known && !own) || is_repeated(in, call) || is_called_again(in, {}))
        return several;
    const bool is_one_block = known && known->name != "calloc";
    if (!is_one_block && !is_one(in, call, dyn_cast<clang::Expr>(child)))
        return several;
    /* A function of the program's own may allocate several at once. */
    int blocks = known ? 1 : 0;
    for (const auto *below : known ? std::set<const function *>{} : calls_.closure({own}))
        for_each_statement(below->decl->getBody(), [&](const clang::Stmt *each) {
            const auto *inner = dyn_cast_or_null<clang::CallExpr>(each);
            const auto *name = inner ? callee_of(inner) : nullptr;
            const auto *what =
                name && !program_.find(name) ? find_known(name->getNameAsString()) : nullptr;
            if (what && what->what == known_call::kind::allocates)
                blocks += is_repeated(*below, inner) ? several : one;
        });
    return blocks > 1 ? several : one;
}

/* How many variables, and allocations, there are of each struct: of the only one, an assignment to
 * a field replaces what the field was. What is const is not assigned to. */
void uniformity::count_instances()
{
    const std::function<void(clang::QualType, int)> count = [&](clang::QualType type, int by) {
        if (const auto *array = type->getAsArrayTypeUnsafe())
            return count(array->getElementType(), 2 * by);
        const auto *record = type->getAsRecordDecl();
        record = record ? record->getDefinition() : nullptr;
        if (!record || by == 0)
            return;
        instances_[name_of(record)] += by;
        for (const auto *member : record->fields())
            count(member->getType(), by);
    };
    for (const auto &[key, variable] : program_.globals())
        if (!variable->getType().isConstQualified())
            count(variable->getType(), 1);
    for (const auto &[name, one] : program_.functions()) {
        const bool is_recursive = calls_.called_below(one.decl->getBody()).count(&one) > 0;
        if (is_recursive)
            recursive_.insert(&one);
        for (const auto *parameter : one.decl->parameters())
            count(parameter->getType(), 1);
        for_each_statement(one.decl->getBody(), [&, in = &one](const clang::Stmt *each) {
            if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each))
                for (const auto *decl : declaration->decls())
                    if (const auto *variable = dyn_cast<clang::VarDecl>(decl)) {
                        count(variable->getType(), is_recursive ? 2 : 1);
                        if (variable->isStaticLocal())
                            statics_.insert(program::key(variable));
                    }
            if (const auto *literal = dyn_cast_or_null<clang::CompoundLiteralExpr>(each))
                count(literal->getType(), 1);
            if (const auto *size = dyn_cast_or_null<clang::UnaryExprOrTypeTraitExpr>(each))
                count(size->getTypeOfArgument(), allocated(*in, size));
            if (const auto *cast = dyn_cast_or_null<clang::CastExpr>(each);
                cast && cast->getCastKind() == clang::CK_BitCast &&
                cast->getType()->isPointerType() &&
                cast->getType()->getPointeeType()->isRecordType() &&
                !is_call_with_size(cast->getSubExpr()) &&
                may_lead_to_unsized(*in, cast->getSubExpr()))
                count(cast->getType()->getPointeeType(), 2);
        });
    }
}

/* May @pointer lead to a block that is allocated by a number of bytes, not by the size of a type?
 */
bool uniformity::may_lead_to_unsized(const function &in, const clang::Expr *pointer)
{
    if (!has_found_unsized_) {
        for_each_statement(program_, [this](const function *one, const clang::Stmt *each) {
            const auto *call = dyn_cast_or_null<clang::CallExpr>(each);
            const auto *callee = call ? callee_of(call) : nullptr;
            const auto *known =
                callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
            if (known && known->what == known_call::kind::allocates &&
                std::none_of(call->arg_begin(), call->arg_end(), [&](const clang::Expr *argument) {
                    return has_size_of_type(argument);
                }))
                unsized_.insert("block " + one->place(call));
        });
        has_found_unsized_ = true;
    }
    if (unsized_.empty() || !pointer->getType()->isPointerType())
        return false;
    const auto targets = targets_of(in, pointer);
    return std::any_of(targets.begin(), targets.end(),
                       [this](const auto &key) { return unsized_.count(key) > 0; });
}

/* Does @value, wherever what is in it comes from, have a sizeof? */
bool uniformity::has_size_of_type(const clang::Expr *value)
{
    bool found = false;
    std::set<std::string> named;
    for_each_statement(value, [&](const clang::Stmt *each) {
        found |= isa_and_nonnull<clang::UnaryExprOrTypeTraitExpr>(each);
        if (isa_and_nonnull<clang::DeclRefExpr, clang::MemberExpr>(each))
            named.insert(key_of_object(llvm::cast<clang::Expr>(each)));
    });
    if (found)
        return true;
    if (values_.empty())
        for (const auto &one : assignments_)
            values_[one.key].push_back(one.value);
    return std::any_of(named.begin(), named.end(), [this](const auto &key) {
        const auto [known, is_new] = sized_.try_emplace(key, false);
        const auto all = values_.find(key);
        if (is_new && all != values_.end())
            known->second =
                std::all_of(all->second.begin(), all->second.end(),
                            [this](const auto *each) { return has_size_of_type(each); });
        return known->second;
    });
}

/* Is the value not known to be a communicator of all ranks? No communicator at all is none of some
 * ranks. */
bool uniformity::may_be_part(const clang::Expr *communicator) const
{
    clang::Expr::EvalResult value;
    const auto &context = program_.functions().begin()->second.context();
    if (!communicator)
        return true;
    if (communicator->EvaluateAsInt(value, context)) { /* of MPICH: _WORLD, _NULL; none */
        const auto number = value.Val.getInt().getZExtValue();
        return number != 0x44000000 && number != 0x04000000 && number != 0;
    }
    const auto *inner = communicator->IgnoreParenCasts();
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(inner))
        return may_be_part(choice->getTrueExpr()) || may_be_part(choice->getFalseExpr());
    if (const auto *op = dyn_cast<clang::BinaryOperator>(inner))
        return may_be_part(op->getRHS()); /* an assignment, or a comma */
    if (const auto *op = dyn_cast<clang::UnaryOperator>(inner);
        op && op->getOpcode() == clang::UO_AddrOf) { /* of Open MPI */
        const auto *reference = dyn_cast<clang::DeclRefExpr>(op->getSubExpr()->IgnoreParens());
        const auto name = reference ? reference->getDecl()->getName() : "";
        return name != "ompi_mpi_comm_world" && name != "ompi_mpi_comm_null";
    }
    if (const auto *call = dyn_cast<clang::CallExpr>(inner)) {
        const auto *own = program_.find(callee_of(call));
        return !own || parts_.count(own->name + "()") || !defined_.count(own->name + "()");
    }
    const auto key = communicator_key(communicator);
    return parts_.count(key) || !defined_.count(key);
}

/* Communicators by what they are kept in. What all of whose values are seen, and known to be of all
 * ranks, is of all; anything else may be a part. So one whose address goes anywhere but into a call
 * that makes it is one, unless that is a parameter, which is then the same communicator. */
void uniformity::find_parts()
{
    parts_.insert("");
    for (is_defining_ = true;; is_defining_ = false) {
        std::size_t before;
        do {
            before = parts_.size() + defined_.size();
            for (const auto &one : assignments_)
                define(one);
            for_each_initial_statement(
                program_, [this](const clang::Stmt *each) { find_parts_in(nullptr, each); });
            for_each_statement(program_, [&](const function *in, const clang::Stmt *each) {
                if (each)
                    find_parts_in(in, each);
            });
        } while (parts_.size() + defined_.size() > before);
        if (!is_defining_)
            break;
    }
}

/* Is what gets a value a communicator, or an array of them? What a parameter leads to is called as
 * the parameter is. */
void uniformity::define(const assignment &one)
{
    const auto &context = program_.functions().begin()->second.context();
    if (isa<clang::ImplicitValueInitExpr>(one.value) ||
        !is_communicator(layouts::element_of(context, one.type)))
        return;
    const auto key = one.to ? communicator_key(one.to) : one.key;
    if (is_defining_)
        defined_.insert(key);
    else if (may_be_part(one.value))
        parts_.insert(key);
}

/* Two names of one communicator. */
void uniformity::join(const std::string &one, const std::string &other)
{
    auto &which = is_defining_ ? defined_ : parts_;
    if (which.count(one) || which.count(other))
        which.insert({one, other});
}

/* All communicators in memory of @type are some that are not known. */
void uniformity::lose(const clang::ASTContext &context, clang::QualType type)
{
    type = layouts::element_of(context, type);
    const auto *record = program_.definition_of(type->getAsRecordDecl());
    if (!record || is_communicator(type))
        return;
    for (const auto *member : record->fields()) {
        if (is_communicator(layouts::element_of(record->getASTContext(), member->getType())))
            parts_.insert(program::key(member));
        lose(record->getASTContext(), member->getType());
    }
}

/* The communicator @key is where @pointer, an address or a parameter, leads to. */
void uniformity::follow_pointer(const function *in, const clang::Expr *pointer,
                                const std::string &key)
{
    const clang::Stmt *child = pointer, *up = in ? in->parents->getParent(pointer) : nullptr;
    for (; isa_and_nonnull<clang::CastExpr, clang::ParenExpr>(up); up = in->parents->getParent(up))
        child = up;
    if (const auto *op = dyn_cast_or_null<clang::UnaryOperator>(up);
        op && (op->getOpcode() == clang::UO_Deref || op->getOpcode() == clang::UO_LNot))
        return;
    if (const auto *op = dyn_cast_or_null<clang::BinaryOperator>(up); op && op->isComparisonOp())
        return;
    const auto *subscript = dyn_cast_or_null<clang::ArraySubscriptExpr>(up);
    if (subscript && subscript->getBase() == child)
        return;
    const auto *call = dyn_cast_or_null<clang::CallExpr>(up);
    const auto callees = call ? called_by(program_, call) : std::vector<const function *>{};
    const auto *name = call ? callee_of(call) : nullptr;
    const auto *known =
        name && !program_.find(name) ? find_known(name->getNameAsString()) : nullptr;
    bool is_followed = false;
    for (unsigned i = 0; call && i < call->getNumArgs(); i++) {
        if (call->getArg(i) != child)
            continue;
        if (known)
            is_followed = std::string_view("hHi").find(known->effect(i)) != std::string_view::npos;
        for (const auto *callee : callees) {
            is_followed =
                i < callee->decl->getNumParams() &&
                callee->decl->getParamDecl(i)->getType()->isPointerType() &&
                is_communicator(callee->decl->getParamDecl(i)->getType()->getPointeeType());
            if (!is_followed)
                break;
            join(key, program::key(callee->decl->getParamDecl(i)));
        }
        if (known && known->effect(i) == 'h')
            define_by(*known, call, key);
    }
    if (!is_followed)
        parts_.insert(key);
}

/* @key is made by @call. */
void uniformity::define_by(const known_call &known, const clang::CallExpr *call,
                           const std::string &key)
{
    static const std::set<std::string_view> keep = {
        "MPI_Comm_dup",     "MPI_Comm_dup_with_info", "MPI_Cart_create",
        "MPI_Graph_create", "MPI_Dist_graph_create",  "MPI_Dist_graph_create_adjacent"};
    if (is_defining_)
        defined_.insert(key);
    else if (!keep.count(known.name) || may_be_part(call->getArg(0)))
        parts_.insert(key);
}

void uniformity::find_parts_in(const function *in, const clang::Stmt *each)
{
    const auto &context = program_.functions().begin()->second.context();
    /* Addresses, and parameters that are some. */
    const auto *address = dyn_cast<clang::UnaryOperator>(each);
    if (address && address->getOpcode() == clang::UO_AddrOf &&
        is_communicator(layouts::element_of(context, address->getSubExpr()->getType())))
        follow_pointer(in, address, communicator_key(address->getSubExpr()));
    const auto *cast = dyn_cast<clang::CastExpr>(each);
    if (cast && cast->getCastKind() == clang::CK_ArrayToPointerDecay &&
        is_communicator(layouts::element_of(context, cast->getSubExpr()->getType())))
        follow_pointer(in, cast, communicator_key(cast->getSubExpr()));
    const auto *reference = dyn_cast<clang::DeclRefExpr>(each);
    const auto *parameter =
        reference ? dyn_cast<clang::ParmVarDecl>(reference->getDecl()) : nullptr;
    if (parameter && parameter->getType()->isPointerType() &&
        is_communicator(parameter->getType()->getPointeeType()))
        follow_pointer(in, reference, program::key(parameter));
    /* Structs that are used as other memory. */
    const auto *up =
        in && cast ? in->parents->getParentIgnoreParenCasts(const_cast<clang::CastExpr *>(cast))
                   : nullptr;
    const auto *user = dyn_cast_or_null<clang::CallExpr>(up);
    const auto *used_by = user ? callee_of(user) : nullptr;
    if (cast && cast->getCastKind() == clang::CK_BitCast && cast->getType()->isPointerType() &&
        !(used_by && !program_.find(used_by) && find_known(used_by->getNameAsString())))
        for (const auto type : resources::pointees_of(cast))
            if (!context.hasSameUnqualifiedType(type, cast->getType()->getPointeeType()))
                lose(context, type);
    if (const auto *member = dyn_cast<clang::MemberExpr>(each);
        member && is_communicator(layouts::element_of(context, member->getType())))
        if (const auto *record =
                dyn_cast<clang::RecordDecl>(member->getMemberDecl()->getDeclContext());
            record && record->isUnion())
            parts_.insert(communicator_key(member));
    if (const auto *call = dyn_cast<clang::CallExpr>(each))
        lose_in_call(call);
}

void uniformity::lose_in_call(const clang::CallExpr *call)
{
    const auto &context = program_.functions().begin()->second.context();
    const auto *callee = callee_of(call);
    const auto *known =
        callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
    if (!known || known->name == "memset")
        return;
    const bool is_copy = known->name == "memcpy" || known->name == "memmove";
    for (unsigned i = 0; i < call->getNumArgs(); i++) {
        if (std::string_view("obuU").find(known->effect(i)) == std::string_view::npos)
            continue;
        for (const auto type : resources::pointees_of(call->getArg(i))) {
            const auto from =
                is_copy ? resources::pointees_of(call->getArg(1)) : std::vector<clang::QualType>();
            if (from.size() != 1 || !context.hasSameUnqualifiedType(type, from.front()))
                lose(context, type);
        }
    }
}

/* Is the communicator that of all ranks? */
bool uniformity::is_world(const clang::CallExpr *call) const
{
    return std::none_of(call->arg_begin(), call->arg_end(), [this](const clang::Expr *argument) {
        return is_communicator(argument->getType()) && may_be_part(argument);
    });
}

std::string uniformity::why_run(const function &one, const clang::Stmt *at) const
{
    const auto own = states_.find(one.name);
    if (own != states_.end() && !own->second.control.empty())
        return own->second.control;
    return why_run_there(one, at);
}

std::string uniformity::why_run_there(const function &one, const clang::Stmt *at) const
{
    const auto own = states_.find(one.name);
    if (own != states_.end() && !own->second.left.empty())
        return own->second.left;
    const clang::Stmt *child = at;
    for (const auto *up = one.parents->getParent(at); up; up = one.parents->getParent(up)) {
        const bool decides = condition_of_control(up) != child || body_of(up);
        if (const auto found = conditions_.find(up); decides && found != conditions_.end())
            return found->second;
        child = up;
    }
    return {};
}

/* Is it stdin, or something that gets it anywhere? */
bool uniformity::may_be_stdin(const clang::Expr *stream) const
{
    bool found = false;
    for_each_statement(stream, [&](const clang::Stmt *each) {
        if (const auto *object = dyn_cast_or_null<clang::Expr>(each);
            isa_and_nonnull<clang::DeclRefExpr, clang::MemberExpr>(object))
            found |= inputs_.count(key_of_object(object)) > 0;
        const auto *call = dyn_cast_or_null<clang::CallExpr>(each);
        const auto *own = call ? program_.find(callee_of(call)) : nullptr;
        found |= own && inputs_.count(own->name + "()") > 0;
    });
    return found;
}

void uniformity::find_inputs()
{
    if (!program_.globals().count("stdin"))
        inputs_.insert("stdin");
    for (std::size_t before = 0; before != inputs_.size();) {
        before = inputs_.size();
        for (const auto &one : assignments_)
            if (resources::is_stream(one.type) && may_be_stdin(one.value))
                inputs_.insert(one.key);
    }
}

/* What is in a file is what it was, for a successor. */
bool uniformity::is_file_of_run(const clang::Expr *argument) const
{
    return what_ == between::runs && resources::is_stream(argument->getType());
}

std::string uniformity::why_call(const function &one, const clang::CallExpr *call,
                                 const differing &now) const
{
    const auto *callee = callee_of(call);
    if (const auto *own = program_.find(callee)) {
        const auto found = states_.find(own->name);
        return found == states_.end() ? "" : found->second.returned;
    }
    const auto *known = callee ? find_known(callee->getNameAsString()) : nullptr;
    if (!callee && what_ == between::runs) {
        for (const auto *may_be : called_by(program_, call))
            if (const auto found = states_.find(may_be->name);
                found != states_.end() && !found->second.returned.empty())
                return found->second.returned;
        return {};
    }
    if (known && what_ == between::runs && is_of_process(known->name))
        return one.place(call);
    if (!known || known->what == known_call::kind::refused ||
        (what_ == between::ranks && known->what == known_call::kind::own &&
         known->name.substr(0, 4) != "MPI_"))
        return one.place(call);
    if (known->name == "MPI_Wtime")
        return one.place(call);
    if (auto found = why_callback(call); !found.empty())
        return found;
    if (known->name.substr(0, 4) == "MPI_")
        return {}; /* an error code */
    /* A new block is one on each rank, of whatever size. */
    if (known->name == "malloc" || known->name == "calloc" || known->name == "aligned_alloc")
        return {};
    return why_input(one, call, *known, now);
}

/* Why an argument of @call, which is not one of the program's own functions, or what it reads by
 * way of one, may differ. */
std::string uniformity::why_input(const function &one, const clang::CallExpr *call,
                                  const known_call &known, const differing &now) const
{
    for (unsigned i = 0; i < call->getNumArgs(); i++) {
        const auto *argument = call->getArg(i);
        if (is_file_of_run(argument)) {
            if (may_be_stdin(argument)) /* a successor has another one */
                return one.place(call);
            continue;
        }
        auto found = is_list_of_arguments(argument) ? one.place(call) : why(one, argument, now);
        const bool is_read =
            std::string_view("ibUe").find(known.effect(i)) != std::string_view::npos &&
            !resources::is_stream(argument->getType());
        if (found.empty() && is_read && !is_copy_of_struct(one, call))
            found = why_memory(one, argument, now);
        if (!found.empty())
            return found;
    }
    return {};
}

std::string uniformity::why(const function &one, const clang::Expr *expression,
                            const differing &now) const
{
    if (!expression)
        return {};
    if (const auto *size = dyn_cast<clang::UnaryExprOrTypeTraitExpr>(expression))
        return why_size(one, size, now);
    if (const auto *call = dyn_cast<clang::CallExpr>(expression))
        return why_call(one, call, now);
    const auto known = [&](const std::string &key) {
        const auto found = now.find(key);
        return found == now.end() ? std::string() : found->second;
    };
    if (const auto *reference = dyn_cast<clang::DeclRefExpr>(expression)) {
        const auto *variable = dyn_cast<clang::VarDecl>(reference->getDecl());
        return variable ? known(program::key(variable)) : "";
    }
    if (const auto *member = dyn_cast<clang::MemberExpr>(expression)) {
        const auto *field = dyn_cast<clang::FieldDecl>(member->getMemberDecl());
        auto found = field ? known(program::key(field)) : "";
        return found.empty() ? why_place(one, member, now) : found;
    }
    if (const auto *block = dyn_cast<clang::StmtExpr>(expression)) /* GNU's ({ }) */
        return why(one, dyn_cast_or_null<clang::Expr>(block->getSubStmt()->getStmtExprResult()),
                   now);
    if (isa<clang::VAArgExpr>(expression)) /* which argument that is, is not followed */
        return one.place(expression);
    const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(expression);
    const auto *op = dyn_cast<clang::UnaryOperator>(expression);
    if (subscript || (op && op->getOpcode() == clang::UO_Deref)) {
        /* What a pointer leads to may have been changed by another name, unless it is an argument.
         */
        const auto *base = subscript ? subscript->getBase() : op->getSubExpr();
        const auto *inner = base->IgnoreParenCasts();
        const auto *reference = dyn_cast<clang::DeclRefExpr>(inner);
        if (what_ == between::ranks && inner->getType()->isPointerType() &&
            !(reference && isa<clang::ParmVarDecl>(reference->getDecl())))
            return one.place(expression);
        if (auto found = expression->getType()->isRecordType() ? "" : why_memory(one, base, now);
            !found.empty())
            return found;
    }
    for (const auto *child : expression->children())
        if (const auto *below = dyn_cast_or_null<clang::Expr>(child))
            if (auto found = why(one, below, now); !found.empty())
                return found;
    return {};
}

/* Of an array whose length is no constant, that is what it was when it was declared. */
std::string uniformity::why_size(const function &one, const clang::UnaryExprOrTypeTraitExpr *size,
                                 const differing &now) const
{
    if (!size->getTypeOfArgument()->isVariablyModifiedType())
        return {};
    const auto *reference =
        size->isArgumentType()
            ? nullptr
            : dyn_cast<clang::DeclRefExpr>(size->getArgumentExpr()->IgnoreParens());
    const auto *variable = reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
    if (!variable)
        return one.place(size);
    const auto found = now.find(program::key(variable) + " size");
    return found == now.end() ? "" : found->second;
}

/* Why the length of a variable, or of what it leads to, may differ that is declared here. */
std::string uniformity::why_length(const function &one, clang::QualType type,
                                   const differing &now) const
{
    while (type->isVariablyModifiedType()) {
        if (type->getAs<clang::TypedefType>()) /* as it was where that stands */
            return one.place(one.decl->getBody());
        if (const auto *array = one.context().getAsVariableArrayType(type))
            if (auto found = why(one, array->getSizeExpr(), now); !found.empty())
                return found;
        if (const auto *array = type->getAsArrayTypeUnsafe())
            type = array->getElementType();
        else if (type->isPointerType())
            type = type->getPointeeType();
        else
            return one.place(one.decl->getBody());
    }
    return {};
}

/* Does @pointer lead to a variable or field that is no part of an array? Structs are counted. */
bool uniformity::leads_to_one(const clang::Expr *pointer,
                              std::set<const clang::ParmVarDecl *> seen) const
{
    if (!seen.empty())
        return finds_one(pointer, std::move(seen));
    const auto found = to_one_.find(pointer);
    return found != to_one_.end() ? found->second
                                  : to_one_.emplace(pointer, finds_one(pointer, {})).first->second;
}

bool uniformity::finds_one(const clang::Expr *pointer,
                           std::set<const clang::ParmVarDecl *> seen) const
{
    pointer = pointer->IgnoreParenCasts();
    const auto type = pointer->getType();
    if (type->isPointerType() && type->getPointeeType()->isRecordType())
        return true;
    const auto *address = dyn_cast<clang::UnaryOperator>(pointer);
    if (address && address->getOpcode() == clang::UO_AddrOf) {
        const auto *object = address->getSubExpr()->IgnoreParens();
        return isa<clang::DeclRefExpr, clang::MemberExpr>(object) &&
               !object->getType()->isArrayType();
    }
    const auto *reference = dyn_cast<clang::DeclRefExpr>(pointer);
    const auto *parameter =
        reference ? dyn_cast<clang::ParmVarDecl>(reference->getDecl()) : nullptr;
    const auto *in = parameter
                         ? program_.find(dyn_cast<clang::FunctionDecl>(parameter->getDeclContext()))
                         : nullptr;
    if (!in || !is_kept_parameter(*in, parameter))
        return false;
    if (!seen.insert(parameter).second)
        return true;
    const auto number = parameter->getFunctionScopeIndex();
    const auto &callers = calls_.callers_of(*in);
    return std::all_of(callers.begin(), callers.end(), [&](const auto &site) {
        return number < site.call->getNumArgs() && leads_to_one(site.call->getArg(number), seen);
    });
}

/* Has it the value that it has had at @place, if that is in front of all its uses since? Only local
 * variables that nobody else knows, and that are not written behind @place. */
bool uniformity::is_fixed_since(const function &in, const clang::Expr *value,
                                clang::SourceLocation place) const
{
    const auto &sources = in.context().getSourceManager();
    bool is_fixed = true;
    for_each_statement(value, [&](const clang::Stmt *each) {
        const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each);
        const auto *variable = reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
        const auto *op = dyn_cast_or_null<clang::BinaryOperator>(each);
        is_fixed &=
            reference
                ? variable && variable->hasLocalStorage()
                : (op && !op->isAssignmentOp()) ||
                      isa_and_nonnull<clang::ParenExpr, clang::CastExpr, clang::IntegerLiteral>(
                          each);
        for (const auto &one : used_.of(in))
            if (variable && one.variable == variable &&
                (one.what.escapes || (one.what.writes && !sources.isBeforeInTranslationUnit(
                                                             one.at->getBeginLoc(), place))))
                is_fixed = false;
    });
    return is_fixed;
}

/* Are @count times @bytes all of @array, whose length is not a constant? */
bool uniformity::is_all_of(const function &in, const clang::Expr *count, std::uint64_t bytes,
                           const clang::VarDecl *array) const
{
    const auto *type = in.context().getAsVariableArrayType(array->getType());
    /* A type with a name has the length that there was when it was named. */
    if (!type || !type->getSizeExpr() || array->getType()->getAs<clang::TypedefType>() ||
        type->getElementType()->isVariablyModifiedType())
        return false;
    const std::uint64_t element =
        in.context().getTypeSizeInChars(type->getElementType()).getQuantity();
    const auto constant = [&](const clang::Expr *value) -> std::uint64_t {
        clang::Expr::EvalResult number;
        return value->EvaluateAsInt(number, in.context()) ? number.Val.getInt().getZExtValue() : 0;
    };
    const auto is_size_of_it = [&](const clang::Expr *value) {
        const auto *size = dyn_cast<clang::UnaryExprOrTypeTraitExpr>(without_widening(in, value));
        const auto *of = size && size->getKind() == clang::UETT_SizeOf && !size->isArgumentType()
                             ? dyn_cast<clang::DeclRefExpr>(size->getArgumentExpr()->IgnoreParens())
                             : nullptr;
        return of && of->getDecl() == array;
    };
    const auto is_length = [&](const clang::Expr *value) {
        llvm::FoldingSetNodeID one, other;
        value = without_widening(in, value);
        value->Profile(one, in.context(), true);
        without_widening(in, type->getSizeExpr())->Profile(other, in.context(), true);
        return one == other && is_fixed_since(in, value, array->getLocation());
    };
    count = without_widening(in, count);
    if (is_size_of_it(count))
        return bytes >= 1;
    if (is_length(count))
        return bytes >= element;
    const auto *op = dyn_cast<clang::BinaryOperator>(count);
    if (op && op->getOpcode() == clang::BO_Div && is_size_of_it(op->getLHS())) {
        const auto by = constant(op->getRHS());
        return by > 0 && element % by == 0 && bytes >= by;
    }
    return op && op->getOpcode() == clang::BO_Mul &&
           ((is_length(op->getLHS()) && constant(op->getRHS()) * bytes >= element) ||
            (is_length(op->getRHS()) && constant(op->getLHS()) * bytes >= element));
}

/* Are @count times @bytes from @pointer on all of the array, or of the one object, that it leads
 * to? What a parameter leads to is what it is given wherever its function is called. */
bool uniformity::covers(const function &in, const clang::Expr *pointer, const clang::Expr *count,
                        std::uint64_t bytes, std::set<const clang::ParmVarDecl *> seen) const
{
    pointer = array_of(in, pointer);
    const auto type = pointer->getType();
    if (type->isArrayType() && !isa<clang::DeclRefExpr, clang::MemberExpr>(pointer))
        return false; /* a row of one that has others */
    const auto *reference = dyn_cast<clang::DeclRefExpr>(pointer);
    const auto *array = reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
    if (array && array->getType()->isVariableArrayType())
        return is_all_of(in, count, bytes, array);
    const auto *parameter = dyn_cast_or_null<clang::ParmVarDecl>(array);
    clang::Expr::EvalResult number;
    const bool is_constant = count->EvaluateAsInt(number, in.context());
    const auto object = type->isPointerType() ? type->getPointeeType() : type;
    if (is_constant && (type->isArrayType() || leads_to_one(pointer, {})) &&
        !object->isIncompleteType() && object->isConstantSizeType()) {
        const auto size = in.context().getTypeSizeInChars(object).getQuantity();
        if (size > 0 && number.Val.getInt().getExtValue() > 0 &&
            number.Val.getInt().getZExtValue() * bytes >= static_cast<std::uint64_t>(size))
            return true;
    }
    const auto *length = dyn_cast<clang::DeclRefExpr>(count->IgnoreParenCasts());
    const auto *given = length ? dyn_cast<clang::ParmVarDecl>(length->getDecl()) : nullptr;
    if (!parameter || (!given && !is_constant) || !is_kept_parameter(in, parameter) ||
        (given && !is_kept_parameter(in, given)) || !seen.insert(parameter).second ||
        leads_to_struct(pointer))
        return false;
    const auto &callers = calls_.callers_of(in);
    const auto is_covered = [&](const auto &site) {
        const auto number_of = parameter->getFunctionScopeIndex();
        if (program_.find(callee_of(site.call)) != &in || number_of >= site.call->getNumArgs() ||
            (given && given->getFunctionScopeIndex() >= site.call->getNumArgs()))
            return false;
        return covers(*site.in, site.call->getArg(number_of),
                      given ? site.call->getArg(given->getFunctionScopeIndex()) : count, bytes,
                      seen);
    };
    return !callers.empty() && std::all_of(callers.begin(), callers.end(), is_covered);
}

/* Does what @call gives all ranks alike fill all of what argument @number leads to? */
bool uniformity::fills(const function &in, const clang::CallExpr *call, const known_call &known,
                       unsigned number) const
{
    const auto *pointer = call->getArg(number)->IgnoreParenCasts();
    if (known.what != known_call::kind::collective)
        return !pointer->getType()->isArrayType() && leads_to_one(pointer, {});
    return number + 2 < call->getNumArgs() &&
           covers(in, pointer, call->getArg(number + 1),
                  size_of_datatype(in, call->getArg(number + 2)), {});
}

/* What @objects are may differ, and what parameters are called that may lead to them. */
void uniformity::mark(const function &one, const std::set<std::string> &objects,
                      const std::string &why, differing &now) const
{
    for (const auto &object : objects)
        for (const auto &each : memory_of(object))
            now.try_emplace(each, why);
    for (const auto &[key, targets] : pointer_parameters_of(one))
        if (!now.count(key) &&
            std::any_of(objects.begin(), objects.end(),
                        [to = targets](const auto &object) { return to->count(object) > 0; }))
            now.try_emplace(key, why);
}

/* What @object is known as: itself, or its fields, and what is of one memory with them. */
const std::vector<std::string> &uniformity::memory_of(const std::string &object) const
{
    const auto [known, is_new] = memory_.try_emplace(object);
    if (is_new)
        for (const auto &key : pointers_.with_fields({object}))
            for (const auto &each : pointers_.of_same_memory(key))
                known->second.push_back(each);
    return known->second;
}

/* Those that lead to no structs, and what to. */
const uniformity::led_parameters &uniformity::pointer_parameters_of(const function &one) const
{
    const auto [known, is_new] = parameters_.try_emplace(&one);
    for (const auto *parameter : one.decl->parameters())
        if (is_new && parameter->getType()->isPointerType() &&
            !parameter->getType()->getPointeeType()->isRecordType())
            known->second.emplace_back(program::key(parameter),
                                       &pointers_.targets_of(program::key(parameter)));
    return known->second;
}

/* Why what @pointer leads to may differ. What a pointer to a struct leads to is known by the keys
 * of its fields. */
std::string uniformity::why_target(const function &one, const clang::Expr *pointer,
                                   const differing &now) const
{
    if (!pointer->getType()->isPointerType() ||
        pointer->IgnoreParenImpCasts()->getType()->getPointeeOrArrayElementType()->isRecordType())
        return {};
    for (const auto &key : targets_of(one, pointer))
        if (const auto found = now.find(key); found != now.end())
            return found->second;
    return {};
}

/* The same, of structs as of other memory. */
std::string uniformity::why_memory(const function &one, const clang::Expr *pointer,
                                   const differing &now) const
{
    if (pointer->getType()->isPointerType())
        for (const auto &key : pointers_.with_fields(targets_of(one, pointer)))
            if (const auto found = now.find(key); found != now.end())
                return found->second;
    return {};
}

/* Why it may differ where @pointer leads. Of a parameter that is said where it is called, but for
 * structs, whose parameters are not what they lead to. */
std::string uniformity::why_which(const function &one, const clang::Expr *pointer,
                                  const differing &now) const
{
    pointer = pointer->IgnoreParenCasts();
    if (pointer->getType()->isArrayType())
        return why_place(one, pointer, now);
    if (const auto *op = dyn_cast<clang::UnaryOperator>(pointer);
        op && op->getOpcode() == clang::UO_AddrOf)
        return why_place(one, op->getSubExpr(), now);
    if (const auto *op = dyn_cast<clang::BinaryOperator>(pointer); op && op->isAdditiveOp()) {
        const bool is_left = op->getLHS()->getType()->isPointerType();
        auto found = why(one, is_left ? op->getRHS() : op->getLHS(), now);
        return found.empty() ? why_which(one, is_left ? op->getLHS() : op->getRHS(), now) : found;
    }
    const auto *reference = dyn_cast<clang::DeclRefExpr>(pointer);
    return reference && isa<clang::ParmVarDecl>(reference->getDecl()) && !leads_to_struct(pointer)
               ? ""
               : why(one, pointer, now);
}

/* Why it may differ which object @object is. */
std::string uniformity::why_place(const function &one, const clang::Expr *object,
                                  const differing &now) const
{
    object = object->IgnoreParenCasts();
    if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(object)) {
        auto found = why(one, subscript->getIdx(), now);
        return found.empty() ? why_which(one, subscript->getBase(), now) : found;
    }
    if (const auto *member = dyn_cast<clang::MemberExpr>(object))
        return member->isArrow() ? why_which(one, member->getBase(), now)
                                 : why_place(one, member->getBase(), now);
    if (isa<clang::DeclRefExpr>(object))
        return {};
    const auto *op = dyn_cast<clang::UnaryOperator>(object);
    return op && op->getOpcode() == clang::UO_Deref ? why_which(one, op->getSubExpr(), now)
                                                    : why(one, object, now);
}

/* Is there one struct only of the type that @object is a member of, or is, or leads to? */
bool uniformity::is_of_one(const clang::Expr *object) const
{
    const auto *record = record_of(object);
    const auto found = record ? instances_.find(name_of(record)) : instances_.end();
    return found == instances_.end() || found->second <= 1;
}

/* Not a field of a struct that there are several of. */
bool uniformity::is_field_of_one(const std::string &key) const
{
    const auto found = pointers_.fields().count(key)
                           ? instances_.find(key.substr(0, key.rfind('.')))
                           : instances_.end();
    return found == instances_.end() || found->second <= 1;
}

void uniformity::assign(const function &one, const clang::Expr *to, const std::string &why,
                        bool adds, differing &now, bool of_pointer) const
{
    bool whole = false;
    const auto keys = keys_of(to, &whole);
    if (!why.empty()) {
        for (const auto &key : keys)
            for (const auto &each : pointers_.of_same_memory(key))
                now.try_emplace(each, why);
        const bool is_address = to->getType()->isPointerType() && of_pointer;
        mark(one, is_address ? targets_of(one, to) : pointers_.objects_of(one, to), why, now);
        return;
    }
    const auto *inner = to->IgnoreParenCasts();
    if (const auto *op = dyn_cast<clang::UnaryOperator>(inner);
        op && op->getOpcode() == clang::UO_Deref && !leads_to_one(op->getSubExpr(), {}))
        return;
    if (adds || !whole)
        return;
    if (const auto *address = dyn_cast<clang::UnaryOperator>(inner))
        inner = address->getSubExpr()->IgnoreParenCasts();
    const auto *record = record_of(inner);
    if (record && !is_of_one(inner))
        return;
    for (const auto &key : keys)
        now.erase(key);
    if (const auto *op = dyn_cast<clang::UnaryOperator>(inner);
        (of_pointer || (op && op->getOpcode() == clang::UO_Deref)) && !record) {
        const auto only = of_pointer ? targets_of(one, to) : pointers_.objects_of(one, to);
        if (only.size() == 1 && only.begin()->rfind("block ", 0) != 0 &&
            is_field_of_one(*only.begin()))
            now.erase(*only.begin());
    }
}

void uniformity::step_known(const function &one, const clang::CallExpr *call,
                            const known_call &known, differing &now) const
{
    auto input = why_input(one, call, known, now);
    if (input.empty())
        input = why_callback(call);
    const auto control = why_run(one, call);
    for (unsigned i = 0; i < call->getNumArgs(); i++) {
        const char letter = known.effect(i);
        const bool is_part = letter == 'h' && what_ == between::ranks &&
                             known.what == known_call::kind::collective &&
                             known.name != "MPI_Comm_dup"; /* there may be none on some ranks */
        const bool is_made = letter == 'h' && what_ == between::runs;
        if ((std::string_view("obuU").find(letter) == std::string_view::npos && !is_part &&
             !is_made) ||
            !call->getArg(i)->getType()->isPointerType())
            continue;
        std::string because;
        if (is_file_of_run(call->getArg(i)))
            continue;
        if (what_ == between::runs) { /* messages are as they were */
            because = is_of_process(known.name)                   ? one.place(call)
                      : known.is_communication() || input.empty() ? control
                                                                  : input;
            assign(one, call->getArg(i), because, true, now, true);
            continue;
        }
        if (letter == 'u' || letter == 'U')
            because = is_world(call) ? control : one.place(call);
        else if (known.what == known_call::kind::pure)
            because = !input.empty() ? input : control;
        else
            because = one.place(call);
        const bool is_one_value = (letter == 'u' || letter == 'U') && fills(one, call, known, i);
        assign(one, call->getArg(i), because, !is_one_value, now, true);
        /* An array that is received as a whole is named without an index. */
        const auto *array = array_of(one, call->getArg(i));
        if (is_one_value && because.empty() && array->getType()->isArrayType() && is_of_one(array))
            for (const auto &key : keys_of(array, nullptr))
                now.erase(key);
    }
}

/* Why what the functions return may differ that @call of the library is handed. */
std::string uniformity::why_callback(const clang::CallExpr *call) const
{
    for (const auto *callee : called_by(program_, call))
        if (const auto found = states_.find(callee->name);
            found != states_.end() && !found->second.returned.empty())
            return found->second.returned;
    return {};
}

/* How often the library calls it is not known, and what with only of those that compare. */
void uniformity::enter_callback(const function &one, const clang::CallExpr *call,
                                const function &callee, const differing &now)
{
    auto &state = states_[callee.name];
    if (what_ == between::ranks && state.control.empty()) {
        state.control = one.place(call);
        wait(callee);
    }
    const auto name = callee_of(call)->getName();
    std::string because =
        name == "qsort" || name == "bsearch" || what_ == between::runs ? "" : one.place(call);
    for (const auto *argument : call->arguments()) {
        if (because.empty())
            because = why(one, argument, now);
        if (because.empty())
            because = why_target(one, argument, now);
    }
    for (const auto *parameter : callee.decl->parameters())
        if (!because.empty() && state.entry.try_emplace(program::key(parameter), because).second)
            wait(callee);
}

void uniformity::step_call(const function &one, const clang::CallExpr *call, differing &now)
{
    const auto *name = callee_of(call);
    if (name && !program_.find(name))
        if (const auto *known = find_known(name->getNameAsString()))
            step_known(one, call, *known, now);
    const auto *own = program_.find(name);
    for (const auto *callee : called_by(program_, call)) {
        const bool is_handed = name && callee != own;
        if (is_handed && !own)
            enter_callback(one, call, *callee, now);
        for (unsigned i = 0; i < call->getNumArgs() && i < callee->decl->getNumParams(); i++)
            if (const auto *pointer = call->getArg(i);
                pointer->getType()->isPointerType() &&
                !pointer->getType()->getPointeeType()->isRecordType())
                if (const auto because = why_which(one, pointer, now); !because.empty())
                    mark(one, targets_of(one, pointer), because, now);
        auto &state = states_[callee->name];
        const bool is_new = !std::exchange(state.is_called, true);
        const auto before = state.entry.size();
        for (const auto &[key, place] : now)
            if (!is_of_call(key, one) || pointers_.is_led_to(key))
                state.entry.try_emplace(key, place);
        for (unsigned i = 0; i < call->getNumArgs() && i < callee->decl->getNumParams(); i++) {
            const auto *parameter = callee->decl->getParamDecl(i);
            if (leads_to_struct(call->getArg(i))) { /* what is in it is known by its fields */
                if (auto which = why_which(one, call->getArg(i), now); !which.empty())
                    state.entry.try_emplace(program::key(parameter), which);
                continue;
            }
            auto because = why(one, call->getArg(i), now);
            for (const auto &key : keys_of(call->getArg(i), nullptr))
                if (const auto found = now.find(key); found != now.end() && because.empty() &&
                                                      call->getArg(i)->getType()->isPointerType())
                    because = found->second;
            if (because.empty())
                because = why_target(one, call->getArg(i), now);
            if (!because.empty())
                for (const auto &key : pointers_.with_fields({program::key(parameter)}))
                    state.entry.try_emplace(key, because);
        }
        if (const auto control = why_run(one, call); !control.empty() && state.control.empty()) {
            state.control = control;
            wait(*callee);
        }
        if (is_new || state.entry.size() > before)
            wait(*callee);
        /* Behind it what is not the caller's own is as it is at the callee's end. */
        for (auto it = now.begin(); it != now.end();)
            it = !is_of_call(it->first, one) && !state.exit.count(it->first) && callee == own
                     ? now.erase(it)
                     : std::next(it);
        for (const auto &[key, place] : state.exit)
            if (!is_of_call(key, *callee) || (recursive_.count(callee) && pointers_.is_led_to(key)))
                mark(one, {key}, place, now);
        for (unsigned i = 0; i < call->getNumArgs() && i < callee->decl->getNumParams(); i++) {
            const auto pointer = call->getArg(i)->getType();
            const auto *parameter = callee->decl->getParamDecl(i);
            if (is_handed || !pointer->isPointerType() || pointer->getPointeeType()->isRecordType())
                continue; /* fields are known by their own keys */
            const auto found = state.exit.find(program::key(parameter));
            /* An array that is not what it was is filled, if the parameter leads there all the
             * time. */
            const bool is_array = call->getArg(i)->IgnoreParenCasts()->getType()->isArrayType() &&
                                  callee == own && is_kept_parameter(*own, parameter);
            assign(one, call->getArg(i), found == state.exit.end() ? "" : found->second,
                   !is_array && !leads_to_one(call->getArg(i), {}), now, true);
        }
    }
}

/* @key is a variable or field that begins with @value. @control: why it may not on every rank. */
void uniformity::initialise(const function &one, const std::string &key, const clang::Expr *value,
                            const std::string &control, differing &now) const
{
    const auto *list = dyn_cast<clang::InitListExpr>(value);
    const auto *record = list ? list->getType()->getAsRecordDecl() : nullptr;
    if (list && !(record && record->isUnion())) {
        auto member =
            record ? record->getDefinition()->field_begin() : clang::RecordDecl::field_iterator();
        for (const auto *each : list->inits()) {
            while (record && member->isUnnamedBitfield())
                ++member;
            initialise(one, record ? program::key(*member++) : key, each, control, now);
        }
        return;
    }
    const auto because = why(one, value, now);
    if (because.empty() && control.empty())
        return;
    now.try_emplace(key, because.empty() ? control : because);
    mark(one, {key}, because.empty() ? control : because, now);
}

void uniformity::step(const function &one, const clang::Stmt *at, differing &now)
{
    if (const auto *op = dyn_cast<clang::BinaryOperator>(at); op && op->isAssignmentOp()) {
        auto because = why(one, op->getRHS(), now);
        if (because.empty())
            because = why_place(one, op->getLHS(), now);
        if (because.empty())
            because = is_local(op->getLHS()) ? why_run_there(one, at) : why_run(one, at);
        assign(one, op->getLHS(), because, op->isCompoundAssignmentOp(), now);
    } else if (const auto *count = dyn_cast<clang::UnaryOperator>(at);
               count && count->isIncrementDecrementOp()) {
        auto because = why_place(one, count->getSubExpr(), now);
        if (because.empty())
            because = is_local(count->getSubExpr()) ? why_run_there(one, at) : why_run(one, at);
        assign(one, count->getSubExpr(), because, true, now);
    } else if (const auto *declaration = dyn_cast<clang::DeclStmt>(at)) {
        for (const auto *decl : declaration->decls()) {
            const auto *variable = dyn_cast<clang::VarDecl>(decl);
            if (variable && variable->getType()->isVariablyModifiedType()) {
                now.erase(program::key(variable) + " size");
                if (const auto because = why_length(one, variable->getType(), now);
                    !because.empty())
                    now.try_emplace(program::key(variable) + " size", because);
            }
            if (!variable || !variable->getInit() || variable->hasGlobalStorage())
                continue;
            now.erase(program::key(variable));
            initialise(one, program::key(variable), variable->getInit(), why_run_there(one, at),
                       now);
        }
    } else if (const auto *call = dyn_cast<clang::CallExpr>(at)) {
        step_call(one, call, now);
    } else if (const auto *end = dyn_cast<clang::ReturnStmt>(at)) {
        auto because = why(one, end->getRetValue(), now);
        auto &own = states_[one.name];
        if (because.empty())
            because = why_run_there(one, at);
        if (!because.empty() && own.returned.empty()) {
            own.returned = because;
            wait_for_callers(one);
        }
    }
}

/* What differs where the body of the loop begins; of what its callers have of their own, where they
 * call. */
void uniformity::note_point(const function &one, at_blocks &entries)
{
    if (!at_)
        for (const auto &[block, here] : entries)
            at_point_.insert(here.begin(), here.end());
    for (std::size_t i = 0; at_ && i < at_->way.size(); i++) {
        const auto &[in, call] = at_->way[i];
        if (in != &one)
            continue;
        const auto add = [&](const differing &here) {
            for (const auto &[key, why] : here)
                if (!call || is_of_call(key, one))
                    at_point_.try_emplace(key, why);
        };
        for (const auto *block : *one.cfg) {
            const auto begin = entries.find(block->getBlockID());
            if (begin == entries.end())
                continue;
            auto here = begin->second;
            for (const auto &element : *block)
                if (const auto statement = element.getAs<clang::CFGStmt>()) {
                    if (call && statement->getStmt() == call)
                        add(here);
                    step(one, statement->getStmt(), here);
                }
            if (call || block->getTerminatorStmt() != at_->statement)
                continue;
            add(begin->second);
            /* In a do loop the body comes first; it is entered from the block that jumps back. */
            const auto *body = block->succ_begin()->getReachableBlock();
            for (int blocks = 0; body && blocks < 2; blocks++) {
                if (const auto found = entries.find(body->getBlockID()); found != entries.end())
                    add(found->second);
                body = body->empty() && body->succ_size() == 1
                           ? body->succ_begin()->getReachableBlock()
                           : nullptr;
            }
        }
    }
}

/* Does the program end wherever @one returns by @end? So it does if each caller asks for what it
 * returns, and ends for that. */
bool uniformity::ends_program(const function &one, const clang::ReturnStmt *end,
                              unsigned depth) const
{
    constexpr unsigned kDepth = 8;
    if (one.name == "main")
        return true;
    const auto value = number_of(one, end->getRetValue(), {});
    const auto &callers = calls_.callers_of(one);
    return value && depth < kDepth && !callers.empty() &&
           std::all_of(callers.begin(), callers.end(), [&](const auto &site) {
               return program_.find(callee_of(site.call)) == &one &&
                      ends_where(*site.in, site.call, *value, depth + 1);
           });
}

/* Does the program end if @call, which is in the condition of an if, has returned @value? */
bool uniformity::ends_where(const function &in, const clang::CallExpr *call, std::int64_t value,
                            unsigned depth) const
{
    const clang::Stmt *child = call;
    for (const auto *up = parent_of(in, child); up; child = up, up = parent_of(in, up)) {
        if (const auto *choice = dyn_cast<clang::IfStmt>(up))
            return child == choice->getCond() &&
                   always_ends(in, value ? choice->getThen() : choice->getElse(), depth);
        if (isa<clang::ParenExpr, clang::ImplicitCastExpr>(up))
            continue;
        const auto *op = dyn_cast<clang::UnaryOperator>(up);
        const auto *both = dyn_cast<clang::BinaryOperator>(up);
        if (op && op->getOpcode() == clang::UO_LNot) {
            value = !value;
        } else if (both && both->isComparisonOp()) {
            const bool is_left = both->getLHS() == child;
            const auto other = number_of(in, is_left ? both->getRHS() : both->getLHS(), {});
            const auto holds = [how = both->getOpcode()](std::int64_t a, std::int64_t b) {
                return how == clang::BO_EQ   ? a == b
                       : how == clang::BO_NE ? a != b
                       : how == clang::BO_LT ? a < b
                       : how == clang::BO_GT ? a > b
                       : how == clang::BO_LE ? a <= b
                                             : a >= b;
            };
            if (!other)
                return false;
            value = is_left ? holds(value, *other) : holds(*other, value);
        } else {
            return false;
        }
    }
    return false;
}

bool uniformity::always_ends(const function &in, const clang::Stmt *branch, unsigned depth) const
{
    bool may_leave = false;
    for_each_statement(branch, [&](const clang::Stmt *each) {
        may_leave |= isa_and_nonnull<clang::BreakStmt, clang::ContinueStmt, clang::GotoStmt,
                                     clang::LabelStmt>(each);
    });
    if (!branch || may_leave)
        return false;
    if (const auto *block = dyn_cast<clang::CompoundStmt>(branch))
        return std::any_of(block->body_begin(), block->body_end(),
                           [&](const clang::Stmt *each) { return always_ends(in, each, depth); });
    if (const auto *end = dyn_cast<clang::ReturnStmt>(branch))
        return ends_program(in, end, depth);
    const auto *call = dyn_cast<clang::CallExpr>(branch);
    const auto *callee = call ? callee_of(call) : nullptr;
    const auto *known =
        callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
    return known && known->what == known_call::kind::ends;
}

/* A condition that differs, and what may be left under it. */
void uniformity::note_condition(const function &one, const clang::Stmt *control,
                                const differing &now)
{
    const auto *condition = condition_of_control(control);
    const auto because = why(one, condition, now);
    if (because.empty() || !conditions_.try_emplace(control, because).second)
        return;
    wait(one);
    for_each_statement(control, [&](const clang::Stmt *each) {
        if (!each)
            return;
        auto &own = states_[one.name];
        /* A rank that returns from main(), or makes it return, is at its end, and nothing stands
         * behind that. */
        const auto *end = dyn_cast<clang::ReturnStmt>(each);
        const bool leaves = isa<clang::GotoStmt>(each) || (end && !ends_program(one, end));
        if (leaves && own.left.empty())
            own.left = because;
        if (leaves && own.control.empty() && one.name != "main")
            own.control = because;
        if (isa<clang::GotoStmt>(each) && one.name == "main")
            own.control = because;
        if (isa<clang::ReturnStmt>(each))
            for (const auto *up = one.parents->getParent(each); up; up = one.parents->getParent(up))
                if (body_of(up))
                    conditions_.try_emplace(up, because);
        if (!isa<clang::BreakStmt, clang::ContinueStmt>(each))
            return;
        for (const auto *up = one.parents->getParent(each); up; up = one.parents->getParent(up))
            if (body_of(up) || (isa<clang::SwitchStmt>(up) && isa<clang::BreakStmt>(each))) {
                conditions_.try_emplace(up, because);
                break;
            }
    });
}

void uniformity::run(const function &one)
{
    auto entries = forward_flow(
        *one.cfg, states_[one.name].entry, [&](const clang::CFGBlock &block, differing &now) {
            for (const auto &element : block)
                if (const auto statement = element.getAs<clang::CFGStmt>())
                    step(one, statement->getStmt(), now);
            if (const auto *end = block.getTerminatorStmt(); end && condition_of_control(end))
                note_condition(one, end, now);
        });
    if (what_ == between::runs)
        note_point(one, entries);
    auto &own = states_[one.name];
    const auto &end = entries[one.cfg->getExit().getBlockID()];
    const auto before = own.exit.size();
    own.exit.insert(end.begin(), end.end());
    if (own.exit.size() > before)
        wait_for_callers(one);
}

std::string uniformity::differs_since(const std::string &key) const
{
    const auto found = at_point_.find(key);
    return found == at_point_.end() ? "" : found->second;
}

bool uniformity::differs_in(const std::string &key) const
{
    const auto parts = pointers_.with_fields({key});
    return !differs_since(key).empty() ||
           std::any_of(parts.begin(), parts.end(),
                       [this](const auto &part) { return !differs_since(part).empty(); });
}

bool uniformity::leads_to_block(const std::string &key) const
{
    for (const auto &part : pointers_.with_fields({key}))
        for (const auto &target : pointers_.targets_of(part))
            if (target.rfind("block ", 0) == 0)
                return true;
    return false;
}

std::map<std::string, const clang::FieldDecl *> uniformity::differing_fields() const
{
    std::map<std::string, const clang::FieldDecl *> found;
    for (const auto &[key, field] : pointers_.fields())
        if (at_point_.count(key))
            found.emplace(key, field);
    return found;
}

findings uniformity::differences(const loop &one) const
{
    findings found;
    const auto add = [&](const std::string &place, const std::string &since) {
        found.push_back(
            {place, "ranks may pass it in different numbers: what decides about that may "
                    "differ between them since " +
                        since});
    };
    if (const auto own = conditions_.find(one.statement); own != conditions_.end())
        add(one.place, own->second);
    for (const auto &[in, call] : one.way) {
        const auto *point = call ? static_cast<const clang::Stmt *>(call) : one.statement;
        if (const auto because = why_run(*in, point); !because.empty() && found.empty())
            add(in->place(point), because);
    }
    return found;
}

} // namespace zc::instrument
