export function debounce(callback, milliseconds) {
  let timer;
  return (...args) => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = undefined;
      callback(...args);
    }, milliseconds);
  };
}
