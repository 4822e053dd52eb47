// Activations and their derivatives, and the loops over them, for vectors of whatever length: a
// function of a vector is compiled for the processors that have such, which no argument of a
// template can say, so activations.cc includes this file once for each length, within a namespace
// that says what Floats are and how one computes with them. Hence it has no guard and includes
// nothing.
//
// All of them let pass what is no number, and no exponential's argument is more than 0, so that
// nothing overflows.

// The logistic function, 1 / (1 + exp(-x)): with e = exp(-|x|) it is 1 / (1 + e), or e / (1 + e)
// below 0.
inline Floats SigmoidOf(Floats x) {
  const Floats one = All(1.0F), e = Exp(Difference(All(0.0F), Absolute(x)));
  return Quotient(WhereLess(x, All(0.0F), e, one), Sum(one, e));
}

// From the result: dx = dy y (1 - y)
inline Floats SigmoidGradOf(Floats y, Floats dy) {
  return Times(Times(dy, y), Difference(All(1.0F), y));
}

inline Floats SiluOf(Floats x) {
  return Times(x, SigmoidOf(x));
}

// dx = dy (s + x s (1 - s))
inline Floats SiluGradOf(Floats x, Floats dy) {
  const Floats s = SigmoidOf(x);
  return Times(dy, TimesPlus(x, MinusTimes(s, s, s), s));
}

// (1 - e) / (1 + e) with e = exp(-2 |x|) and x's sign; where that difference would lose digits, the
// polynomial of Cephes (Moshier: "Methods and programs for mathematical functions", 1989;
// single/tanhf.c).
inline Floats TanhOf(Floats x) {
  const Floats one = All(1.0F), size = Absolute(x), square = Times(x, x);
  const Floats e = Exp(Times(All(-2.0F), size));
  const Floats quotient = Quotient(Difference(one, e), Sum(one, e));
  Floats p = All(-5.70498872745e-3F);
  p = TimesPlus(p, square, All(2.06390887954e-2F));
  p = TimesPlus(p, square, All(-5.37397155531e-2F));
  p = TimesPlus(p, square, All(1.33314422036e-1F));
  p = TimesPlus(p, square, All(-3.33332819422e-1F));
  const Floats small = TimesPlus(Times(p, square), x, x);
  return WithSignOf(x, WhereLess(size, All(0.625F), small, quotient));  // of -0, too
}

// From the result: dx = dy (1 - y^2)
inline Floats TanhGradOf(Floats y, Floats dy) {
  return Times(dy, MinusTimes(y, y, All(1.0F)));
}

// The tanh form of GELU is x s(2 u), with the tanh's argument u and the logistic function s: the
// same value without the difference that a tanh near -1 would leave. This is s(2 u).
inline Floats GeluGate(Floats x, Floats square) {
  const Floats inner = TimesPlus(All(kGeluCubic), square, All(1.0F));
  return SigmoidOf(Times(Times(All(2.0F * kGeluRoot), x), inner));
}

inline Floats GeluOf(Floats x) {
  return Times(x, GeluGate(x, Times(x, x)));
}

// dx = dy (s + x s (1 - s) 2 u')
inline Floats GeluGradOf(Floats x, Floats dy) {
  const Floats square = Times(x, x), s = GeluGate(x, square), rest = MinusTimes(s, s, s);
  const Floats slope = TimesPlus(All(6.0F * kGeluRoot * kGeluCubic), square, All(2.0F * kGeluRoot));
  return Times(dy, TimesPlus(Times(x, rest), slope, s));
}

// Of a standard normal distribution.
struct Normal {
  Floats below;    // its share below x
  Floats density;  // at x, times sqrt(2 pi): exp(-x^2 / 2)
};

// The tail by Hastings' polynomial (Abramowitz, Stegun: "Handbook of mathematical functions", 1964,
// 7.1.26), which is off by less than 1.5e-7.
inline Normal NormalAt(Floats x) {
  const Floats one = All(1.0F), u = Times(All(kRootHalf), Absolute(x));
  const Floats density = Exp(Difference(All(0.0F), Times(u, u)));
  const Floats t = Quotient(one, TimesPlus(All(0.3275911F), u, one));
  Floats p = All(1.061405429F);
  p = TimesPlus(p, t, All(-1.453152027F));
  p = TimesPlus(p, t, All(1.421413741F));
  p = TimesPlus(p, t, All(-0.284496736F));
  p = TimesPlus(p, t, All(0.254829592F));
  const Floats tail = Times(Times(Times(All(0.5F), t), p), density);
  return {WhereLess(x, All(0.0F), tail, Difference(one, tail)), density};
}

inline Floats ExactGeluOf(Floats x) {
  return Times(x, NormalAt(x).below);
}

// dx = dy (below + x density)
inline Floats ExactGeluGradOf(Floats x, Floats dy) {
  const Normal normal = NormalAt(x);
  return Times(dy, TimesPlus(Times(All(kDensity), x), normal.density, normal.below));
}

template <Floats (*kOf)(Floats)>
void ForMatrix(const Matrix& m, const float* x, float* y) {
  for (int64_t row = 0; row < m.rows; ++row) {
    const int64_t place = row * m.stride;
    ForLanes(m.columns, [&](auto lanes, int64_t i) {
      lanes.Store(y + place + i, kOf(lanes.Load(x + place + i)));
    });
  }
}

template <Floats (*kOf)(Floats, Floats)>
void ForPairs(int64_t n, const float* kept, const float* dy, float* dx) {
  ForLanes(n, [&](auto lanes, int64_t i) {
    lanes.Store(dx + i, kOf(lanes.Load(kept + i), lanes.Load(dy + i)));
  });
}

inline void Activate(Activation activation, const Matrix& matrix, const float* x, float* y) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kRelu:
      return;
    case Activation::kGelu:
      return ForMatrix<GeluOf>(matrix, x, y);
    case Activation::kExactGelu:
      return ForMatrix<ExactGeluOf>(matrix, x, y);
    case Activation::kSigmoid:
      return ForMatrix<SigmoidOf>(matrix, x, y);
    case Activation::kSilu:
      return ForMatrix<SiluOf>(matrix, x, y);
    case Activation::kTanh:
      return ForMatrix<TanhOf>(matrix, x, y);
  }
}

inline void ActivateGrad(Activation activation, int64_t n, const float* kept, const float* dy,
                         float* dx) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kRelu:
      return;
    case Activation::kGelu:
      return ForPairs<GeluGradOf>(n, kept, dy, dx);
    case Activation::kExactGelu:
      return ForPairs<ExactGeluGradOf>(n, kept, dy, dx);
    case Activation::kSigmoid:
      return ForPairs<SigmoidGradOf>(n, kept, dy, dx);
    case Activation::kSilu:
      return ForPairs<SiluGradOf>(n, kept, dy, dx);
    case Activation::kTanh:
      return ForPairs<TanhGradOf>(n, kept, dy, dx);
  }
}
