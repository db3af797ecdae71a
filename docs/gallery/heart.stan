data {
  int<lower=0> n;
  vector<lower=0>[n] time;             // days
  vector<lower=0, upper=1>[n] died;    // 0: alive when last seen
  vector[n] age;                       // decades from 45
  int<lower=0, upper=1> weibull;       // 0: the hazard is the same on every day
  real<lower=0> beta;                  // exponent of the likelihood
}
parameters {
  real level;
  real slope;
  vector<lower=0>[weibull] shape;
}
transformed parameters {
  vector[n] log_lik;
  {
    real k = weibull ? shape[1] : 1;
    vector[n] log_hazard = log(k) + level + slope * age + (k - 1) * log(time);
    log_lik = died .* log_hazard - exp(log_hazard) .* time / k;
  }
}
model {
  level ~ normal(-6, 3);
  slope ~ normal(0, 1);
  shape ~ lognormal(0, 1);
  target += beta * sum(log_lik);
}
