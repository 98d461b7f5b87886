// The parameter types of a function, where they can be seen.
#pragma once

#include <tuple>
#include <type_traits>

namespace weft::inline v1::stream::detail {

struct unknown {};  // an input type that only the caller knows

// The parameter types of a function that is not generic.
template <class F>
struct signature {
  using parameters = unknown;
};
template <class R, class... A>
struct signature<R (*)(A...)> {
  using parameters = std::tuple<std::remove_cvref_t<A>...>;
};
template <class R, class... A>
struct signature<R (*)(A...) noexcept> : signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct signature<R (C::*)(A...)> : signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct signature<R (C::*)(A...) const> : signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct signature<R (C::*)(A...) noexcept> : signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct signature<R (C::*)(A...) const noexcept> : signature<R (*)(A...)> {};
template <class F>
  requires requires { &F::operator(); }
struct signature<F> : signature<decltype(&F::operator())> {};
template <class F>
using parameters_of = typename signature<F>::parameters;

template <class Parameters>
struct only_one {
  using type = unknown;
};
template <class A>
struct only_one<std::tuple<A>> {
  using type = A;
};
template <class F>
using parameter_of = typename only_one<parameters_of<F>>::type;

}  // namespace weft::inline v1::stream::detail
