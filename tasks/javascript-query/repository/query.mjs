export function stringify(values) {
  return Object.entries(values).map(([key, value]) => `${key}=${value}`).join('&');
}
