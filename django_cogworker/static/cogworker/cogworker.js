/* What the pages of django-cogworker have over plain HTML: times in the zone of whoever looks, and a part that is
   kept up to date. Everything works without it.

   A region with data-cog-poll is fetched again every data-cog-interval seconds. It rests while the tab is hidden,
   while it is paused, and while somebody is in it (a link has the focus, text is marked or typed, details are open), so that
   nothing moves under anybody's hands. When the server does not answer it asks less and less often; when it asks
   for a login or forbids the page, it asks no more. */
(function () {
  "use strict";

  var LONGEST = 60000;
  var STORE = "cogworker.paused";
  var forms = {
    datetime: { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" },
    time: { hour: "2-digit", minute: "2-digit" }
  };

  function language() {
    return document.documentElement.lang || undefined;
  }

  function formatter(form) {
    try {
      return new Intl.DateTimeFormat(language(), forms[form] || forms.datetime);
    } catch (error) {
      return new Intl.DateTimeFormat(undefined, forms[form] || forms.datetime);
    }
  }

  function localise(root) {
    var made = {};
    root.querySelectorAll("time[data-cog-time]").forEach(function (element) {
      var at = new Date(element.dateTime);
      if (isNaN(at)) return;
      var form = element.dataset.cogTime;
      made[form] = made[form] || formatter(form);
      element.title = element.dateTime;
      element.textContent = made[form].format(at);
    });
  }

  function isPaused() {
    try {
      return window.localStorage.getItem(STORE) === "1";
    } catch (error) {
      return false;
    }
  }

  function remember(paused) {
    try {
      window.localStorage.setItem(STORE, paused ? "1" : "0");
    } catch (error) {
      /* private windows may have no storage: then it lasts as long as the page */
    }
  }

  function isChanged(element) {
    if (element.tagName === "OPTION") return element.value !== "" && element.selected !== element.defaultSelected;
    return element.type !== "hidden" && element.type !== "checkbox" && element.value !== element.defaultValue;
  }

  function isInUse(region) {
    var focused = document.activeElement;
    if (focused && focused !== region && region.contains(focused)) return true;
    if (region.querySelector("details[open], input:checked")) return true;
    if (Array.from(region.querySelectorAll("input, option")).some(isChanged)) return true;
    var marked = window.getSelection();
    return Boolean(marked && !marked.isCollapsed && region.contains(marked.anchorNode));
  }

  function follow(region) {
    var usual = (Number(region.dataset.cogInterval) || 5) * 1000;
    var wait = usual;
    var paused = isPaused();
    var timer = null;

    var button = document.createElement("button");
    button.type = "button";
    button.className = "cog-btn cog-quiet cog-refresh";
    var late = document.createElement("p");
    late.className = "cog-late";
    late.setAttribute("role", "status");
    var bar = document.querySelector(".cog-tabs");
    if (bar) bar.append(button);
    else region.before(button);
    region.before(late);

    function label() {
      button.textContent = paused ? region.dataset.cogResume : region.dataset.cogPause;
      button.setAttribute("aria-pressed", String(paused));
    }

    function again() {
      clearTimeout(timer);
      if (!paused && !document.hidden) timer = setTimeout(ask, wait);
    }

    function failed() {
      wait = Math.min(wait * 2, LONGEST);
      late.textContent = region.dataset.cogLate;
    }

    function end() {
      paused = true;
      button.remove();
      late.textContent = region.dataset.cogEnded;
    }

    async function ask() {
      if (isInUse(region)) return again();
      try {
        var answer = await fetch(region.dataset.cogPoll, {
          credentials: "same-origin",
          headers: { "X-Requested-With": "fetch" },
          redirect: "manual"
        });
        if (answer.type === "opaqueredirect" || answer.status === 403) return end();
        if (answer.ok) {
          var text = await answer.text();
          if (!isInUse(region) && !paused) {
            region.innerHTML = text;
            localise(region);
            showBoxes(region);
          }
          wait = usual;
          late.textContent = "";
        } else {
          failed();
        }
      } catch (error) {
        failed();
      }
      again();
    }

    button.addEventListener("click", function () {
      paused = !paused;
      remember(paused);
      label();
      if (paused) clearTimeout(timer);
      else ask();
    });
    document.addEventListener("visibilitychange", function () {
      clearTimeout(timer);
      if (!document.hidden && !paused) ask();
    });
    label();
    again();
  }

  /* A box in the head of a table checks all boxes below it; without a script there is none. */
  function showBoxes(root) {
    root.querySelectorAll("input[data-cog-all]").forEach(function (box) {
      box.hidden = false;
    });
  }

  function boxesOf(box) {
    return box.closest("table").querySelectorAll('input[type="checkbox"][name="' + box.dataset.cogAll + '"]');
  }

  document.addEventListener("change", function (event) {
    var box = event.target;
    if (!(box instanceof HTMLInputElement) || box.type !== "checkbox" || !box.closest("table")) return;
    if (box.dataset.cogAll) {
      boxesOf(box).forEach(function (each) {
        each.checked = box.checked;
      });
      return;
    }
    var all = box.closest("table").querySelector("input[data-cog-all]");
    if (!all) return;
    var boxes = Array.from(boxesOf(all));
    var checked = boxes.filter(function (each) {
      return each.checked;
    }).length;
    all.checked = checked === boxes.length;
    all.indeterminate = checked > 0 && checked < boxes.length;
  });

  /* What goes on in steps: the form that asks for the next one is sent until there is none any more. Where the server
     does not answer the button is left, for whoever wants to go on. */
  async function goOn(region) {
    var told = document.getElementById("cog-told");
    for (;;) {
      var form = region.querySelector("form[data-cog-step]");
      if (!form) break;
      var given = new URLSearchParams(new FormData(form));
      given.set("_live", "1");
      try {
        var answer = await fetch(form.action, {
          method: "POST",
          credentials: "same-origin",
          headers: { "X-Requested-With": "fetch" },
          redirect: "manual",
          body: given
        });
        if (!answer.ok) throw new Error(String(answer.status));
        region.innerHTML = await answer.text();
      } catch (error) {
        told.textContent = region.dataset.cogLate;
        told.className = "cog-late";
        return;
      }
    }
    var end = region.querySelector("[data-cog-finished]");
    if (end) told.textContent = end.dataset.cogFinished;
  }
  // On a narrow screen the tabs are a strip: begin where this page's is in sight.
  var here = document.querySelector(".cog-tabs [aria-current]");
  if (here) here.scrollIntoView({ block: "nearest", inline: "nearest" });

  localise(document);
  showBoxes(document);
  document.querySelectorAll("[data-cog-steps]").forEach(goOn);
  document.querySelectorAll("[data-cog-poll]").forEach(follow);
})();
