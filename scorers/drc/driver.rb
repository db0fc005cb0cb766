# Runs a deck on one layout after the other, inside klayout, inside a box. Started by klayout.py.
#
# A job comes as a line {"n": id, "job": {"gds": base64, "report": name, "fork": bool}} on descriptor 3, what is
# said of it goes to descriptor 4. All of that is a claim: the deck runs in this process and may say it as well.
# What counts is the report, which the parent reads; a claim can only make a run fail.

require 'json'

# The DRC engine collects garbage before and after each run, which takes longer than the run itself.
module GC
  class << self
    def start(*, **)
      nil
    end
  end
end

REQUESTS = IO.new(3, 'r')
REPLIES = IO.new(4, 'w')
LAYOUT = '/box/layout.gds'
DECK = '/box/deck.drc'

def run_deck(report)
  $input = LAYOUT
  $output = report
  RBA::Macro.new(DECK).run
  { 'status' => 'ok' }
rescue SystemExit
  { 'status' => 'ok', 'left' => 'exit' }
rescue Exception => e
  { 'status' => 'error', 'class' => e.class.to_s[0, 100], 'message' => e.message.to_s[0, 1000] }
end

# In a child of this process, which no deck has touched yet.
def run_apart(report)
  reader, writer = IO.pipe
  child = fork do
    reader.close
    writer.write(JSON.generate(run_deck(report)))
    writer.close
    exit!(0)
  end
  writer.close
  said = reader.read
  Process.wait(child)
  said.empty? ? { 'status' => 'crash' } : JSON.parse(said)
end

def job(given)
  return { 'version' => RBA::Application.instance.version } if given.nil?

  Dir.glob('/box/*.lyrdb').each { |old| File.delete(old) }
  File.binwrite(LAYOUT, given['gds'].unpack1('m'))
  given['fork'] ? run_apart(given['report']) : run_deck(given['report'])
end

while (line = REQUESTS.gets)
  request = JSON.parse(line)
  begin
    reply = { 'value' => job(request['job']) }
  rescue Exception => e
    reply = { 'error' => { 'name' => e.class.to_s, 'message' => e.message.to_s[0, 1000], 'trace' => '' } }
  end
  REPLIES.write(JSON.generate({ 'n' => request['n'] }.merge(reply)) + "\n")
  REPLIES.flush
end
